package relay

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"gonbatch/kernel/cell"
	"gonbatch/kernel/wire"
)

// smallKernel replaces GoNB: it understands cells such as "out TEXT", "many COUNT", "large BYTES",
// "panic" and "wait".
type smallKernel struct {
	t          testing.TB
	front      *front
	statusFile string
	release    chan struct{} // closed to let "wait" fail
	waits      chan struct{} // closed when it waits
	executed   atomic.Int32  // cells
}

func startSmallKernel(t testing.TB, c Connection, statusFile string) *smallKernel {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f, err := listen(c, func(err error) { t.Log(err) })
	if err != nil {
		t.Fatal(err)
	}
	k := &smallKernel{t: t, front: f, statusFile: statusFile, release: make(chan struct{}), waits: make(chan struct{})}
	go f.shell.receive(ctx, k.answer, func(err error) { t.Log(err) })
	t.Cleanup(func() { cancel(); f.close() })
	return k
}

func (k *smallKernel) answer(m *wire.Message) {
	k.publish(m, "status", object{"execution_state": "busy"})
	content := object{"status": "ok"}
	if m.Header.Type == "execute_request" {
		content = k.execute(m, text(k.t, m, "code"))
	}
	reply := must(m.Reply(strings.Replace(m.Header.Type, "request", "reply", 1), content))
	_ = k.front.shell.send(reply)
	k.publish(m, "status", object{"execution_state": "idle"})
}

func (k *smallKernel) execute(m *wire.Message, code string) object {
	k.executed.Add(1)
	k.publish(m, "execute_input", object{"code": code, "execution_count": 100})
	code = cell.CleanMarks(code)
	word, rest, _ := strings.Cut(code, " ")
	number, _ := strconv.Atoi(rest)
	failed := object{"status": "error", "ename": "ERROR", "evalue": "exit status 2", "traceback": []string{}}
	switch strings.TrimSpace(word) {
	case "out":
		k.publish(m, "stream", object{"name": "stdout", "text": rest})
	case "many":
		for i := range number {
			k.publish(m, "stream", object{"name": "stdout", "text": fmt.Sprint(i)})
		}
	case "large":
		k.publish(m, "stream", object{"name": "stdout", "text": strings.Repeat("x", number)})
	case "panic":
		k.publish(m, "stream", object{"name": "stderr", "text": "panic: boom\n"})
		k.publish(m, "error", failed)
		return failed
	case "wait":
		close(k.waits)
		<-k.release
		return failed
	}
	for _, command := range statusCommand.FindAllStringSubmatch(code, -1) {
		status := map[string]string{"true": "0", "false": "1"}[command[2]]
		if status == "" {
			continue // it leaves no exit status
		}
		if err := os.WriteFile(k.statusFile, []byte(command[1]+" "+status+"\n"), 0o600); err != nil {
			k.t.Error(err)
		}
	}
	return object{"status": "ok"}
}

// statusCommand matches a wrapped shell command of a cell.
var statusCommand = regexp.MustCompile(`!status (\d+) /bin/bash -c (\w+)`)

func (k *smallKernel) publish(m *wire.Message, messageType string, content any) {
	_ = k.front.iopub.send(must(m.Publish(messageType, content)))
}
