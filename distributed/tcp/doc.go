// Package tcp connects the ranks of a job in a ring of TCP connections, for jobs whose launcher
// gives a rendezvous address and no MPI: torchrun, or anything else that sets RANK, WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT.
//
//	comm, err := tcp.Init(ctx, tcp.Config{Rank: rank, Size: size, Master: "node1:29500"})
//	if err != nil { ... }
//	defer comm.Close()
//	err = comm.AllReduce(values) // every rank now has the sum
//
// The all-reduce is the ring algorithm (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms
// for clusters of workstations, 2009): each rank sends and receives 2(n-1)/n of the data, and all
// ranks get the same bits. On a fast network the cluster's MPI is faster.
//
// The connections are not encrypted, as those of MPI and gloo are not: they are for a cluster's own
// network. Both sides of each prove that they know a key: at the rendezvous, what the launcher gave
// this job's ranks, if it did; among neighbours, one that rank 0 made. Who is silent there, or a
// stranger, holds nobody up.
package tcp
