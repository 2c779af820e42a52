// Package tcp connects the ranks of a job in a ring of TCP connections, for launchers that provide
// a rendezvous address but no MPI: torchrun, or any other that sets RANK, WORLD_SIZE, MASTER_ADDR
// and MASTER_PORT.
//
//	comm, err := tcp.Init(ctx, tcp.Config{Rank: rank, Size: size, Master: "node1:29500"})
//	if err != nil { ... }
//	defer comm.Close()
//	err = comm.AllReduce(values) // every rank now has the sum
//
// A large all-reduce is the ring algorithm (Patarasuk and Yuan, Bandwidth optimal all-reduce
// algorithms for clusters of workstations, 2009): each rank sends and receives 2(n-1)/n of the
// data. A small one in a program is recursive doubling, over direct connections. On the host,
// little data of many ranks goes along a chain until Comm.LinkTree, or a program, has made these
// connections. All ranks get the same bits. On a fast network the cluster's MPI is faster.
//
// Direct connections between ranks that are not neighbors are made when a collective first needs
// them: also for all-to-all, and for groups of ranks.
//
// Like those of MPI and gloo, the connections are not encrypted: they are meant for a cluster's own
// network. Both sides of each connection prove that they know a key. At the rendezvous it is the
// launcher's secret, if there is one; between ranks it is a key that rank 0 generated. A
// connection that stays silent or doesn't know the key delays no rank.
package tcp
