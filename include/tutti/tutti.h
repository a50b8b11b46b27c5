/*
 * tutti.h - all of Tutti's public interface but extend.h, which is for writing your own ops and
 * sources.
 */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <tutti/base.h>
#include <tutti/catalog.h>
#include <tutti/cluster.h>
#include <tutti/comm.h>
#include <tutti/data.h>
#include <tutti/device.h>
#include <tutti/graph.h>
#include <tutti/job.h>
#include <tutti/layers.h>
#include <tutti/model.h>
#include <tutti/models.h>
#include <tutti/ops.h>
#include <tutti/record.h>
#include <tutti/recurrent.h>
#include <tutti/run.h>
#include <tutti/serve.h>
#include <tutti/tasks.h>
#include <tutti/train.h>
#include <tutti/use.h>

#endif
