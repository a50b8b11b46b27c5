/*
 * topology_file.h - topologies in YAML: hosts, processes, devices and links that need not be here.
 */
#ifndef TUTTI_JOB_TOPOLOGY_FILE_H
#define TUTTI_JOB_TOPOLOGY_FILE_H

#include "base/topology.h"

/*
 * Reads a topology, with the options of another one. Errors name the file, line and key. Free with
 * tti_topology_free().
 */
tt_status tti_topology_read(tt_ctx *ctx, const tti_topology *from, const char *path,
                            tti_topology *out) TTI_CHECKED;
bool tti_is_topology_file(const char *text); // by its name: .yaml, .yml

#endif
