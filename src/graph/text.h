/*
 * text.h - what the printer and the parser of graphs share: limits and elements as text.
 */
#ifndef TUTTI_GRAPH_TEXT_H
#define TUTTI_GRAPH_TEXT_H

#include "base/value.h"
#include "graph/graph.h"

#define TTI_TEXT_MAGIC  "tutti graph 1"
#define TTI_TEXT_LIST   16        // constants of up to this many elements are written out
#define TTI_TEXT_INPUTS 65536     // of one node
#define TTI_TEXT_AFTER  (1 << 20) // control edges of a graph
#define TTI_TEXT_VALUE  512       // characters of an attribute's value
#define TTI_NUMBER_TEXT TTI_DOUBLE_TEXT
#define TTI_TEXT_DATA   ((size_t)1 << 30) // bytes of all constants together

// tt_graph_parse() with another limit for the bytes of all constants together.
tt_graph *tti_graph_parse(tt_ctx *ctx, const char *text, size_t bytes, size_t data_limit);

// What a name may consist of without quotes.
bool tti_is_name_char(char c);

// Element i as text that reads back to the same bits; false if there is none (NaN with a payload).
bool tti_element_print(tt_dtype type, const void *data, int64_t i,
                       char buf[TTI_NUMBER_TEXT]) TTI_CHECKED;
// False if text is no number of the type, or an integer beyond its range.
bool tti_element_parse(tt_dtype type, void *data, int64_t i, const char *text) TTI_CHECKED;

// Base64 of RFC 4648 with padding. The parser gives how many characters it took, -1 if they are no
// base64 of exactly that many bytes.
void tti_base64_print(tti_text *t, const void *data, size_t bytes);
int64_t tti_base64_parse(const char *s, size_t n, void *data, size_t bytes);

// Is there a cycle of inputs and control edges? path, n_nodes zeros, gets 1 for the nodes that lead
// to it and are on it. False: TT_ENOMEM recorded.
bool tti_find_cycle(const tt_graph *g, uint8_t *path, bool *found) TTI_CHECKED;

#endif
