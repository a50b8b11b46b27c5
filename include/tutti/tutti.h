/*
 * tutti.h - all of Tutti's public interface but extend.h, which is for writing ops and backends.
 */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <tutti/base.h>
#include <tutti/device.h>
#include <tutti/graph.h>
#include <tutti/ops.h>
#include <tutti/run.h>

#endif
