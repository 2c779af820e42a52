package wire

import (
	"crypto/rand"
	"encoding/json"
	"time"
)

// Version is the version of Jupyter's messaging protocol.
const Version = "5.4"

// Header identifies a message.
type Header struct {
	ID       string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	Type     string `json:"msg_type"`
	Version  string `json:"version"`
}

// Message is a message of Jupyter's protocol. Its parts remain the JSON text that was received, so
// that they can be passed on unchanged.
type Message struct {
	// Identities are the routing frames at the beginning: the recipients of a reply, or a topic.
	Identities [][]byte
	// Header is the decoded RawHeader.
	Header Header
	// ParentID is the msg_id of the message that this one answers, or empty.
	ParentID string
	// RawHeader, Parent, Metadata and Content are the four signed parts.
	RawHeader, Parent, Metadata, Content json.RawMessage
	// Buffers are binary parts of comm messages. They are not signed.
	Buffers [][]byte
}

// session is the session of the messages that this process creates.
var session = rand.Text()

// Reply returns a message that answers m and goes to the sender of m.
func (m *Message) Reply(messageType string, content any) (*Message, error) {
	return m.child(messageType, content, m.Identities)
}

// Publish returns a message about m for the iopub channel; its topic is its type.
func (m *Message) Publish(messageType string, content any) (*Message, error) {
	return m.child(messageType, content, [][]byte{[]byte(messageType)})
}

func (m *Message) child(messageType string, content any, to [][]byte) (*Message, error) {
	child, err := New(messageType, content)
	if err != nil {
		return nil, err
	}
	child.Header.Username = m.Header.Username
	if child.RawHeader, err = json.Marshal(child.Header); err != nil {
		return nil, err
	}
	child.Identities, child.Parent, child.ParentID = to, m.RawHeader, m.Header.ID
	return child, nil
}

// New returns a message without a parent.
func New(messageType string, content any) (*Message, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	header := Header{
		ID: rand.Text(), Session: session, Username: "kernel", Date: time.Now().UTC().Format(time.RFC3339Nano),
		Type: messageType, Version: Version,
	}
	raw, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	empty := json.RawMessage("{}")
	return &Message{Header: header, RawHeader: raw, Parent: empty, Metadata: empty, Content: text}, nil
}
