/*
 * zmq_weak.h - the functions of ZeroMQ that the wire calls, as weak references: a program that is
 * linked statically, where ZeroMQ's own libraries are often not to be had, links without them. It
 * is then one process, and opening a wire says so.
 */
#ifndef TUTTI_NET_ZMQ_WEAK_H
#define TUTTI_NET_ZMQ_WEAK_H

#include <zmq.h>

#pragma weak zmq_bind
#pragma weak zmq_close
#pragma weak zmq_connect
#pragma weak zmq_ctx_new
#pragma weak zmq_ctx_set
#pragma weak zmq_ctx_term
#pragma weak zmq_curve_public
#pragma weak zmq_msg_close
#pragma weak zmq_msg_copy
#pragma weak zmq_msg_data
#pragma weak zmq_msg_get
#pragma weak zmq_msg_gets
#pragma weak zmq_msg_init
#pragma weak zmq_msg_init_size
#pragma weak zmq_msg_more
#pragma weak zmq_msg_recv
#pragma weak zmq_msg_send
#pragma weak zmq_msg_size
#pragma weak zmq_poll
#pragma weak zmq_send
#pragma weak zmq_setsockopt
#pragma weak zmq_socket
#pragma weak zmq_socket_monitor
#pragma weak zmq_strerror
#pragma weak zmq_z85_decode
#pragma weak zmq_z85_encode

#endif
