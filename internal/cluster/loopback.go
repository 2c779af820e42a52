package cluster

// LoopbackVariables returns the variables, as NAME=VALUE, with which the MPI ranks of one machine
// connect only through its loopback interface. By default, MPI looks at all interfaces, and fails
// if one of them disappears meanwhile, such as that of a VPN or a container. The first two are
// those of Open MPI, the third is that of UCX, which MPICH uses:
// https://docs.open-mpi.org/en/main/tuning-apps/networking/tcp.html and
// https://openucx.readthedocs.io/en/master/faq.html
func LoopbackVariables() []string {
	return []string{"OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo", "UCX_NET_DEVICES=lo"}
}
