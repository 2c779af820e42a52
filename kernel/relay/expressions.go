package relay

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
	"gonbatch/kernel/wire"
)

// evaluate evaluates the user_expressions of a request, each in its own program. It returns their
// values, or why they have none.
func (r *relay) evaluate(ctx context.Context, asked executeRequest) object {
	values := object{}
	for name, text := range asked.Expressions {
		values[name] = r.evaluateOne(ctx, text)
	}
	return values
}

func (r *relay) evaluateOne(ctx context.Context, text string) object {
	text = gocell.PlainLines(text)
	code := "func main() { " + cell.ShowOpen + text + cell.ShowClose + " }"
	request, err := wire.New("execute_request", executeRequest{Silent: true, StoreHistory: new(false), StopOnError: new(false)}.content(code))
	if err != nil {
		return failure{"ProtocolError", err.Error(), []string{err.Error()}}.content("error")
	}
	result := filepath.Join(r.opts.CellDir, resultFile)
	_ = os.Remove(result)
	e := &execution{relay: r, request: request, code: text, count: r.count, crash: crash{pass: func(*wire.Message) {}, wait: holdTime}}
	e.prepared.Code = code
	reply := r.callBack(ctx, request, request.Content, func(m *wire.Message) {
		if name, _ := stream(m); name == "stderr" {
			e.crash.take(m)
		}
	})
	if reply == nil {
		return object{"status": "aborted"}
	}
	if f := e.failure(reply); f != nil {
		return f.content("error")
	}
	data, err := os.ReadFile(result)
	if err != nil || !json.Valid(data) {
		data = []byte(`{"text/plain": "<nil>"}`) // nil shows nothing
	}
	return object{"status": "ok", "data": json.RawMessage(data), "metadata": object{}}
}
