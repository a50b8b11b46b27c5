/*
 * lock.h - the order in which locks are taken. A thread that holds one takes only those below it.
 *
 *   0. a hold of a tt_store     the values of variables, their shards and versions: a context's,
 *                               not a thread's, for a run or a read (run/store.h)
 *      tti_host.mu, then        which containers a server has; which queues a container has. Never
 *      tti_container.mu         with a hold
 *   1. tt_store.mu              which variables there are, and who has holds
 *   2. a device's lock          its arena and its list of work
 *   3. tti_queue.mu             a bounded queue
 *      tti_saver.mu             what the thread that saves has to do; never held with a queue's
 *      tti_peer.out_mu          messages to another process, one after another; then the wire's
 *                               lock of that connection; never held with tti_world.mu
 *      tti_world.mu             what has come from other processes
 *      tti_queue_core.mu        the elements of a queue; perhaps after a container's lock, or
 *                               that of tt_threads, which guards the members of a group
 *      tti_listening.mu, then   states of a server's connections
 *      tti_client.mu            a client's context, while it is stopped from outside
 *   4. tt_ctx.mu                the error slot and events out; recursive, because the owner's event
 *                               function may call the library
 *   5. tti_tracker.mu           events that wait to be sent; taken under tt_ctx.mu, and nothing is
 *                               logged under it
 *
 * Errors can be recorded and lines logged under any lock, so tt_ctx.mu comes after them. No lock
 * but a hold is held across a kernel, a wait on a flag or a call of a user's function other than
 * an event's; a context that has a hold gets another one of the same store without waiting.
 */
#ifndef TUTTI_BASE_LOCK_H
#define TUTTI_BASE_LOCK_H
#endif
