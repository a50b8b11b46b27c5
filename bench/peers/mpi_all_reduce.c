/*
 * mpi_all_reduce.c - the peer of bench/allreduce.c: MPI_Allreduce of f32 sums between two processes
 * of one machine, one line "bytes seconds" (median) a size. mpicc -O3; mpirun -n 2.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1 << 10, 1 << 18, 1 << 24}; // floats
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int s = 0; s < 3; s++) {
        size_t n = sizes[s];
        int reps = n < 1e5 ? 2000 : n < 2e6 ? 200 : 5;
        float *x = malloc(n * sizeof(float)), *y = malloc(n * sizeof(float));
        double *t = malloc((size_t)reps * sizeof(double));
        for (int i = -3; i < reps; i++) {
            for (size_t k = 0; k < n; k++)
                x[k] = (float)((int)(k & 7) + i);
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            MPI_Allreduce(x, y, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            if (i >= 0)
                t[i] = MPI_Wtime() - start;
        }
        qsort(t, (size_t)reps, sizeof(double), by_value);
        if (rank == 0)
            printf("%zu %.9f\n", n * sizeof(float), t[reps / 2]);
        free(x);
        free(y);
        free(t);
    }
    MPI_Finalize();
    return 0;
}
