/*
 * gemm.h - the plan of a product, made by matmul.c when shapes are bound and read by the kernel.
 *
 * C [m, n] is cut into units: a block of rows times a block of columns, each computed by one thread
 * from first to last k. Inside a unit C is a grid of tiles, one per call of the micro-kernel
 * (gemm_tile.h), which holds its tile in registers. Nothing here changes a bit.
 */
#ifndef TUTTI_OP_GEMM_H
#define TUTTI_OP_GEMM_H

#include <stdbool.h>
#include <stdint.h>

// Largest tile of each instruction set: rows, and columns in vectors of 16.
#define TTI_GEMM_MR_AVX512 14
#define TTI_GEMM_NV_AVX512 2
#define TTI_GEMM_MR_AVX2   6
#define TTI_GEMM_NV_AVX2   1
#define TTI_GEMM_MR_PLAIN  4
#define TTI_GEMM_NV_PLAIN  1

#define TTI_GEMM_ROWS 256 // most rows of a unit: packed A fills a part of a core's second cache
#define TTI_GEMM_LEAD 6   // leading axes of a batched product

// How a tile reads A and goes over lanes.
enum tti_gemm_way {
    GEMM_BY_K = 0,    // A packed or transposed: rows are neighbours, as is the stride of k
    GEMM_BY_ROW = 1,  // A as it lies: as is the stride of rows
    GEMM_BY_FOUR = 2, // as GEMM_BY_K; four lanes are combined in registers
};

// Attributes of matmul.
typedef struct tti_matmul_attr {
    bool transpose_a, transpose_b;
    int act;
    bool wide; // y is f32 though a and b are bf16 or f16
} tti_matmul_attr;

typedef struct tti_gemm_plan {
    int64_t m, n, k; // of one product
    int64_t batch;   // products
    int64_t row_blocks, col_blocks;
    int64_t kc;  // longest run of k in one sweep over a unit
    int64_t per; // entries of k for each row of the batch, if k is the open axis
    int lead;    // leading axes, with the steps of a and b in matrices; 0: broadcast
    int32_t dim[TTI_GEMM_LEAD], step_a[TTI_GEMM_LEAD], step_b[TTI_GEMM_LEAD];
    int act;
    int levels;    // of the stack
    int tile_rows; // most rows of a tile
    int way;       // enum gemm_way
    bool trans_a, trans_b;
    bool pack_a, pack_b;
    bool has_lanes; // k is the open axis: one chain per lane, then the tree
    bool half_in;   // a, b and bias are bf16 or f16: widened as they are packed
    bool half_out;  // y is: sums are kept on the stack until they are rounded
    int64_t at_b;   // offsets into a thread's memory, in elements; packed A is at 0
    int64_t at_stack;
} tti_gemm_plan;

#endif
