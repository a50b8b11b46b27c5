/*
 * llama.c - LLaMA: RMS norms before rotary attention with grouped heads and before a gated
 * feed-forward layer, no biases. Names are those of Hugging Face's LlamaForCausalLM; a block is one
 * layer, "model.layers.<i>".
 */
#include "model/attend.h"
#include <stdio.h>
#include <tutti/models.h>

#define DEVIATION 0.02 // of first weights

// ---- block -----------------------------------------------------------------------------------

typedef struct block_opts {
    size_t opts_size;
    int heads, kv_heads, hidden, window;
    double theta, eps;
    TT_LAYER_OPTIONS;
} block_opts;

#define NUMBER(type, field, least, help)                                                          \
    {                                                                                             \
#field, TT_OPT_INT32, #least, (help), offsetof(type, field), (least), TTI_MAX_WIDTH, NULL \
    }
static const tt_option block_options[] = {
    NUMBER(block_opts, heads, 1, "number of attention heads"),
    NUMBER(block_opts, kv_heads, 1, "number of heads of keys and values"),
    NUMBER(block_opts, hidden, 1, "hidden units of the feed-forward layer"),
    NUMBER(block_opts, window, 0, "sliding window of attention; 0: none"),
    {"theta", TT_OPT_FLOAT, "10000", "base of the rotary frequencies", offsetof(block_opts, theta),
     1, 1e12, NULL},
    {"eps", TT_OPT_FLOAT, "1e-6", "small constant added in the norms", offsetof(block_opts, eps), 0,
     1, NULL},
    TT_OPTION_END,
};

static tt_tensor *block_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    static const char *const names[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                        "self_attn.o_proj"};
    const block_opts *o = opts;
    tt_graph *g = b->graph;
    tt_init init = {TT_INIT_NORMAL, 0, DEVIATION};
    if (!tti_layer_sequence_check(b, in[0]))
        return NULL;
    tti_norm norm = {.eps = o->eps, .rms = true};
    tti_attend a = {.names = names,
                    .heads = o->heads,
                    .kv_heads = o->kv_heads,
                    .window = o->window,
                    .theta = o->theta,
                    .causal = true,
                    .rotary = true,
                    .no_bias = true,
                    .init = init,
                    .last = init};
    tt_tensor *x = in[0], *h = tti_norm_in(b, x, "input_layernorm", &norm);
    h = tti_attend_in(b, h, h, NULL, &a);
    x = h == NULL ? NULL : tt_add(g, x, h);
    h = x == NULL ? NULL : tti_norm_in(b, x, "post_attention_layernorm", &norm);
    tti_linear l = {
        .name = "mlp.gate_proj", .units = o->hidden, .act = TT_SILU, .no_bias = true, .init = init};
    tt_tensor *gate = tti_linear_in(b, h, &l);
    l.name = "mlp.up_proj";
    l.act = TT_LINEAR;
    tt_tensor *up = gate == NULL ? NULL : tti_linear_in(b, h, &l);
    l.name = "mlp.down_proj";
    l.units = in[0]->shape.dim[2];
    h = up == NULL ? NULL : tti_linear_in(b, tt_mul(g, gate, up), &l);
    return h == NULL ? NULL : tt_add(g, x, h);
}

const tti_layer_def tti_kind_llama_block = {
    .name = "llama_block",
    .help = "block of LLaMA: x + attention(norm(x)), then x + swiglu(norm(x))",
    .options = block_options,
    .size = sizeof(block_opts),
    .common = offsetof(block_opts, name),
    .build = block_build,
    .torch = TTI_TORCH_MATRIX,
};

// ---- model -----------------------------------------------------------------------------------

#define OPTS tt_layer_llama_opts
static const tt_option options[] = {
    {"layers", TT_OPT_INT32, "4", "number of blocks", offsetof(OPTS, layers), 1, 4096, NULL},
    {"heads", TT_OPT_INT32, "4", "number of attention heads", offsetof(OPTS, heads), 1, 65536,
     NULL},
    {"kv_heads", TT_OPT_INT32, "0",
     "number of heads of keys and values (grouped-query attention); 0: same as heads",
     offsetof(OPTS, kv_heads), 0, 65536, NULL},
    {"width", TT_OPT_INT32, "128", "number of channels", offsetof(OPTS, width), 1, TTI_MAX_WIDTH,
     NULL},
    {"hidden", TT_OPT_INT32, "0",
     "hidden units of the feed-forward layers; 0: 8/3 width, rounded up to a multiple of 32",
     offsetof(OPTS, hidden), 0, TTI_MAX_WIDTH, NULL},
    {"vocab", TT_OPT_INT, NULL, "vocabulary size", offsetof(OPTS, vocab), 1, TTI_MAX_WIDTH, NULL},
    {"theta", TT_OPT_FLOAT, "10000", "base of the rotary frequencies", offsetof(OPTS, theta), 1,
     1e12, NULL},
    {"eps", TT_OPT_FLOAT, "1e-6", "small constant added in the norms", offsetof(OPTS, eps), 0, 1,
     NULL},
    {"window", TT_OPT_INT32, "0",
     "sliding window: attend only to positions less than this far away; 0: to all",
     offsetof(OPTS, window), 0, TTI_MAX_WIDTH, NULL},
    {"tied", TT_OPT_BOOL, "false", "share the output weights with the embedding",
     offsetof(OPTS, tied), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_tensor *expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const OPTS *o = opts;
    block_opts block = {.opts_size = sizeof(block),
                        .heads = o->heads,
                        .kv_heads = o->kv_heads == 0 ? o->heads : o->kv_heads,
                        .hidden = o->hidden,
                        .window = o->window,
                        .theta = o->theta,
                        .eps = o->eps};
    if (block.hidden == 0)
        block.hidden = (int)(((int64_t)o->width * 8 + 2) / 3 + 31) / 32 * 32;
    tt_tensor *embed = tt_layer_embedding(m, .vocab = o->vocab, .width = o->width,
                                          .name = "model.embed_tokens", .from = {o->from[0]});
    for (int i = 0; i < o->layers; i++) {
        char path[32];
        snprintf(path, sizeof(path), "model.layers.%d", i);
        block.name = path;
        if (tti_layer_add(m, &tti_kind_llama_block, &block) == NULL)
            return NULL;
    }
    tt_layer_rms_norm(m, .eps = o->eps == 0 ? TT_ZERO : o->eps, .name = "model.norm");
    if (!o->tied)
        return tt_layer_dense(m, .units = (int)o->vocab, .no_bias = true, .name = "lm_head",
                              .init = {TT_INIT_NORMAL, 0, DEVIATION});
    tt_layer_embedding_opts head = {
        .vocab = o->vocab, .width = o->width, .name = "lm_head", .share = embed};
    return tti_layer_add(m, &tti_kind_tied_dense, &head);
}

const tti_layer_def tti_kind_llama = {
    .name = "llama",
    .help = "LLaMA language model: tokens [time] to logits [time, vocab]",
    .options = options,
    .size = sizeof(OPTS),
    .common = offsetof(OPTS, name),
    .expand = expand,
};

tt_tensor *tt_layer_llama_with(tt_model *m, const OPTS *opts)
{
    return tti_layer_call(m, &tti_kind_llama, opts);
}
