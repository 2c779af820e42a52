// Package schedulertest tests the contract of a submit.Scheduler. A scheduler's own test provides a
// Fixture:
//
//	func TestContract(t *testing.T) {
//		schedulertest.Run(t, submitCommand(t), os.Environ(), func(t *testing.T, shell submit.Shell) schedulertest.Fixture {
//			return schedulertest.Fixture{Scheduler: local.New(shell, nil), Root: t.TempDir(), Spec: submit.JobSpec{Nodes: 1, TasksPerNode: 2}}
//		})
//	}
package schedulertest
