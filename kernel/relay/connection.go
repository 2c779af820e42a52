package relay

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Connection is the content of a Jupyter connection file.
type Connection struct {
	Transport string `json:"transport"`
	IP        string `json:"ip"`
	Key       string `json:"key"`
	Scheme    string `json:"signature_scheme"`
	Shell     int    `json:"shell_port"`
	IOPub     int    `json:"iopub_port"`
	Stdin     int    `json:"stdin_port"`
	Control   int    `json:"control_port"`
	Heartbeat int    `json:"hb_port"`
}

// ReadConnection reads a connection file.
func ReadConnection(file string) (Connection, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Connection{}, err
	}
	c := Connection{Transport: "tcp", IP: "127.0.0.1"}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("connection file %s: %w", file, err)
	}
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("connection file %s: %w", file, err)
	}
	return c, nil
}

// PrivateConnection returns a connection over sockets in a folder that only this user can enter.
func PrivateConnection(dir string) Connection {
	return Connection{
		Transport: "ipc", IP: filepath.Join(dir, "s"), Key: rand.Text(), Scheme: "hmac-sha256",
		Shell: 1, IOPub: 2, Stdin: 3, Control: 4, Heartbeat: 5,
	}
}

// Write writes c as a connection file.
func (c Connection) Write(file string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func (c Connection) validate() error {
	if c.Transport != "tcp" && c.Transport != "ipc" {
		return fmt.Errorf("transport %q: only tcp and ipc are supported", c.Transport)
	}
	for _, port := range []int{c.Shell, c.IOPub, c.Stdin, c.Control, c.Heartbeat} {
		if port <= 0 {
			return errors.New("a port is missing: it needs shell_port, iopub_port, stdin_port, control_port and hb_port")
		}
	}
	return nil
}

func (c Connection) address(port int) string {
	if c.Transport == "ipc" {
		return fmt.Sprintf("ipc://%s-%d", c.IP, port)
	}
	return "tcp://" + net.JoinHostPort(c.IP, strconv.Itoa(port))
}
