package slurm

import "strings"

// reasons explains SLURM's reasons for a job's state: what it waits for, and what to do if waiting
// will not help.
var reasons = map[string]string{
	"AssocGrpCpuLimit":                "the account is at its CPU limit; this job starts when another of its jobs ends",
	"AssocMaxJobsLimit":               "the account is at its job limit; this job starts when one of its jobs ends",
	"BadConstraints":                  "no node satisfies --constraint and the other options; cancel the job and request less",
	"BeginTime":                       "waits for its start time; a requeued job waits about two minutes",
	"Cleaning":                        "is being requeued",
	"Dependency":                      "waits for another job",
	"DependencyNeverSatisfied":        "waits for a job that has failed, so it will never start; cancel it with `submit cancel`",
	"InvalidAccount":                  "the account does not exist; cancel it and give another --account",
	"InvalidQOS":                      "the QOS does not exist; cancel it and give another --qos",
	"JobHeldAdmin":                    "held by an administrator",
	"JobHeldUser":                     "held; release it with submit release",
	"JobLaunchFailure":                "its script was killed, or could not be started: is the working or run directory missing on the node?",
	"Licenses":                        "waits for a license",
	"MaxMemPerLimit":                  "it asks for more memory than its partition allows; cancel it and give less --mem or another --partition",
	"NodeDown":                        "a node that it needs is down",
	"Nodes_required_for_job_are_DOWN": "nodes that it needs are down, drained or reserved; it starts once they are back",
	"OutOfMemory":                     "it used more memory than it had; request more with --mem",
	"PartitionConfig":                 "it requests more than its partition allows, so it will never start; cancel it and request fewer --nodes, less --time or another --partition",
	"PartitionDown":                   "its partition is down",
	"PartitionInactive":               "its partition accepts no jobs now",
	"PartitionNodeLimit":              "it asks for more nodes than its partition gives now; if that doesn't change, cancel it and give fewer --nodes or another --partition",
	"PartitionTimeLimit":              "it asks for more time than its partition allows, so it will never start; cancel it and give a shorter --time or another --partition",
	"Priority":                        "jobs of a higher priority come first",
	"QOSMaxJobsPerUserLimit":          "you run as many jobs as this QOS allows; it starts when one ends",
	"QOSMaxWallDurationPerJob":        "it asks for more time than its QOS allows; cancel it and give a shorter --time",
	"ReqNodeNotAvail":                 "nodes that it needs are down, drained or reserved",
	"Reservation":                     "waits for its reservation",
	"Resources":                       "waits for nodes that are in use",
	"TimeLimit":                       "it reached its time limit; give more with --time",
	"launch_failed_requeued_held":     "a node failed to start it, and it is held; release it with submit release once the node's slurmd.log says why",
	"job_requeued_in_held_state":      "was requeued and held; release it with submit release",
}

// explain returns the meaning of a reason; "" if this version does not know it. Some reasons have
// more words after a comma: "ReqNodeNotAvail,_UnavailableNodes:n3".
func explain(reason string) string {
	word, _, _ := strings.Cut(reason, ",")
	return reasons[word]
}
