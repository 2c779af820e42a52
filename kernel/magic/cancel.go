package magic

import (
	"context"
)

// cancel cancels a job.
func (m *Magics) cancel(ctx context.Context, s Session, args string) error {
	job, err := m.oneJob("cancel", args)
	if err != nil {
		return err
	}
	return m.command(ctx, s, []string{"cancel", job.target()})
}

// cancelButton shows a button that cancels the job, if the front end has buttons. remove removes
// the button.
func (m *Magics) cancelButton(ctx context.Context, s Session, job Job) (remove func()) {
	hub := s.Widgets()
	if hub == nil || !hub.Shown() {
		return func() {}
	}
	label := "Cancel job " + job.ID
	clicked := make(chan struct{}, 1)
	button := hub.NewButton(label, "ends the job now, as %cancel "+job.ID+" does", func() {
		select {
		case clicked <- struct{}{}:
		default: // It is already being cancelled.
		}
	})
	id := m.newID(job.cardID() + "-cancel")
	s.Display(id, button.View())
	ctx, stop := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-clicked:
			}
			button.Disable("cancelling job " + job.ID + " …")
			if _, err := m.output(ctx, "cancel", job.target()); err != nil && ctx.Err() == nil {
				s.Print(err.Error() + "\n")
				button.Enable(label)
			}
		}
	}()
	return func() {
		stop()
		s.Update(id, map[string]any{"text/plain": ""})
		button.Close()
	}
}
