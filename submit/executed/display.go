package executed

import (
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

func init() {
	// GoNB's kernel accepts these types too.
	gob.Register(map[string]any{})
	gob.Register([]any{})
}

// rich is a rich output.
type rich struct {
	Type     string         `json:"output_type"`
	Data     map[string]any `json:"data"`
	Metadata map[string]any `json:"metadata"`
}

// screen receives a program's messages.
type screen interface {
	// show shows an output, or replaces an earlier one with the same id, which may be empty.
	show(id string, output json.RawMessage)
	// tell shows a line about a request that a job can't fulfil.
	tell(line string)
	// synced confirms to the program that everything it has sent so far is shown.
	synced(id int)
}

// readDisplays reads the messages of GoNB's package gonbui from a program's pipe until the pipe
// ends.
func readDisplays(r io.Reader, s screen) error {
	decoder := gob.NewDecoder(r)
	for {
		var message protocol.DisplayData
		err := decoder.Decode(&message)
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("rich output of the program: %w", err)
		}
		handleDisplay(message, s)
	}
}

// handleDisplay handles one message.
func handleDisplay(message protocol.DisplayData, s screen) {
	if request, ok := message.Data[protocol.MIMEJupyterInput]; ok {
		prompt := ""
		if input, ok := request.(protocol.InputRequest); ok {
			prompt = input.Prompt
		}
		s.tell(fmt.Sprintf("the program asks for input (%q), and a job has none", prompt))
		return
	}
	if request, ok := message.Data[protocol.MIMECommValue]; ok {
		value, _ := request.(protocol.CommValue)
		switch id, ok := value.Value.(int); {
		case value.Address == protocol.GonbuiSyncAddress && ok:
			s.synced(id)
		case value.Request:
			s.tell(fmt.Sprintf("the program reads %q from the notebook's page and may wait for it forever: a job has no page", value.Address))
		}
		return
	}
	if request, ok := message.Data[protocol.MIMECommSubscribe]; ok {
		if subscription, _ := request.(protocol.CommSubscription); !subscription.Unsubscribe {
			s.tell(fmt.Sprintf("the program listens to %q in the notebook's page, and a job has no page", subscription.Address))
		}
		return
	}
	if output := displayOutput(message); output != nil {
		s.show(message.DisplayID, output)
	}
}

// displayOutput returns a message as a notebook output; nil if it shows nothing.
func displayOutput(message protocol.DisplayData) json.RawMessage {
	output := rich{Type: "display_data", Data: map[string]any{}, Metadata: map[string]any{}}
	for mime, value := range message.Data {
		if value != nil && strings.Contains(string(mime), "/") {
			output.Data[string(mime)] = mimeValue(string(mime), value)
		}
	}
	if len(output.Data) == 0 {
		return nil
	}
	for name, value := range message.Metadata {
		if _, err := json.Marshal(value); err == nil { // A NaN is not valid JSON.
			output.Metadata[name] = value
		}
	}
	data, err := json.Marshal(output)
	if err != nil {
		return nil
	}
	return data
}

// mimeValue returns a value as notebooks store it: JSON for JSON types, else text, with bytes in
// base64.
func mimeValue(mime string, value any) any {
	isJSON := mime == "application/json" || strings.HasSuffix(mime, "+json")
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case []byte:
		if !utf8.Valid(v) || !strings.HasPrefix(mime, "text/") && !isJSON && mime != string(protocol.MIMEImageSVG) {
			return base64.StdEncoding.EncodeToString(v)
		}
		text = string(v)
	default:
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		if isJSON {
			return json.RawMessage(data)
		}
		return string(data)
	}
	if isJSON && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}
