package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// durable are the commands that go through the durable log, by the name under
// which the log keeps them. A name is never given to another command.
func durable(name string) Command {
	switch name {
	case "register":
		return &Register{}
	case "deregister":
		return &Deregister{}
	case "set-override":
		return &SetOverride{}
	case "drop-override":
		return &DropOverride{}
	case "create-service":
		return &CreateService{}
	case "update-service":
		return &UpdateService{}
	case "delete-service":
		return &DeleteService{}
	case "set-cluster":
		return &SetCluster{}
	case "create-namespace":
		return &CreateNamespace{}
	case "update-namespace":
		return &UpdateNamespace{}
	case "delete-namespace":
		return &DeleteNamespace{}
	case "set-switch":
		return &SetSwitch{}
	}
	return nil
}

func durableName(c Command) string {
	switch c.(type) {
	case *Register:
		return "register"
	case *Deregister:
		return "deregister"
	case *SetOverride:
		return "set-override"
	case *DropOverride:
		return "drop-override"
	case *CreateService:
		return "create-service"
	case *UpdateService:
		return "update-service"
	case *DeleteService:
		return "delete-service"
	case *SetCluster:
		return "set-cluster"
	case *CreateNamespace:
		return "create-namespace"
	case *UpdateNamespace:
		return "update-namespace"
	case *DeleteNamespace:
		return "delete-namespace"
	case *SetSwitch:
		return "set-switch"
	}
	return ""
}

// envelope is the durable form. Its name comes first, so that it can be told
// without reading the body.
type envelope struct {
	Name string  `json:"op"`
	Body Command `json:"body"`
}

// What is before and behind the name in an envelope.
const (
	beforeName = `{"op":"`
	behindName = `","body":`
)

// EncodeCommand returns the durable form of a command: one JSON object.
func EncodeCommand(c Command) ([]byte, error) {
	name := durableName(c)
	if name == "" {
		return nil, fmt.Errorf("encode command: %T is not durable", c)
	}
	data, err := json.Marshal(envelope{Name: name, Body: c})
	if err != nil {
		return nil, fmt.Errorf("encode command %s: %w", name, err)
	}
	return data, nil
}

// DecodeCommand reads what [EncodeCommand] wrote.
func DecodeCommand(data []byte) (Command, error) {
	rest, begins := bytes.CutPrefix(data, []byte(beforeName))
	name, rest, named := bytes.Cut(rest, []byte(behindName))
	body, ends := bytes.CutSuffix(rest, []byte("}"))
	if !begins || !named || !ends {
		return nil, errors.New("decode command: it is no command")
	}
	c := durable(string(name))
	if c == nil {
		return nil, fmt.Errorf("decode command: unknown command %q; it is from a newer version", name)
	}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("decode command %s: %w", name, err)
	}
	return c, nil
}

// Restamp replaces the lease-clock time of a durable command by that of now: the
// lease clock starts anew with the server, the wall clock of the command stays.
func Restamp(c Command, now Instant) {
	if m := metaOf(c); m != nil {
		m.At.Lease = now.Lease
	}
}

// metaOf returns the time and cause of a durable command.
func metaOf(c Command) *Meta {
	if s, ok := c.(interface{ stamp() *Meta }); ok {
		return s.stamp()
	}
	return nil
}

func (m *Meta) stamp() *Meta { return m }
