package magic

import "context"

// cancel cancels a job.
func (m *Magics) cancel(ctx context.Context, s Session, args string) error {
	job, err := m.oneJob("cancel", args)
	if err != nil {
		return err
	}
	return m.command(ctx, s, []string{"cancel", job.target()})
}
