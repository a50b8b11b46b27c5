/*
 * recurrent.h - recurrent ops and layers: rnn, gru, lstm over sequences [batch, time, channels].
 */
#ifndef TUTTI_RECURRENT_H
#define TUTTI_RECURRENT_H

#include <tutti/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tt_recurrent_kind {
    TT_RNN = 0,  // y = tanh(z + q)
    TT_GRU = 1,  // gates r, u, n as in PyTorch: the reset gate is applied after the product
    TT_LSTM = 2, // gates i, f, g, o
} tt_recurrent_kind;
typedef struct tt_recurrent_opts {
    size_t opts_size;
    tt_recurrent_kind kind;
    tt_tensor *bias; // [gates h], added to the products of the state; default: none
    bool reverse;    // from the last step to the first
} tt_recurrent_opts;
/*
 * A layer over time in one node: y [batch, t, h] from z [batch, t, gates h], the products of the
 * input with their bias, and w [h, gates h], which multiplies the state: q = h w + bias. gates is 1
 * (rnn), 3 (gru) or 4 (lstm), in PyTorch's order. The state begins with zeros.
 */
TT_API tt_tensor *tt_recurrent_with(tt_graph *g, tt_tensor *z, tt_tensor *w,
                                    const tt_recurrent_opts *opts);
#define tt_recurrent(...) TT_CALL3(tt_recurrent, __VA_ARGS__, )

typedef struct tt_layer_lstm_opts {
    size_t opts_size;
    int units;          // required
    int layers;         // one above the other; default 1
    bool bidirectional; // a second one from the last step to the first; outputs side by side
    bool last;          // the output of the last step only, [batch, units]; default: all steps
    double dropout;     // between layers
    bool no_bias;
    tt_init init; // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_lstm_opts;
typedef tt_layer_lstm_opts tt_layer_gru_opts, tt_layer_rnn_opts;
// Weights have PyTorch's names: weight_ih_l0 [in, gates units], weight_hh_l0, bias_ih_l0, ...
TT_API tt_tensor *tt_layer_lstm_with(tt_model *m, const tt_layer_lstm_opts *opts);
TT_API tt_tensor *tt_layer_gru_with(tt_model *m, const tt_layer_lstm_opts *opts);
TT_API tt_tensor *tt_layer_rnn_with(tt_model *m, const tt_layer_lstm_opts *opts);
#define tt_layer_lstm(...) TT_CALL1(tt_layer_lstm, __VA_ARGS__, )
#define tt_layer_gru(...)  TT_CALL1(tt_layer_gru, __VA_ARGS__, )
#define tt_layer_rnn(...)  TT_CALL1(tt_layer_rnn, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
