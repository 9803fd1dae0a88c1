package registry

import (
	"encoding/json"
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

type envelope struct {
	Name string          `json:"op"`
	Body json.RawMessage `json:"body"`
}

// EncodeCommand returns the durable form of a command: one JSON object.
func EncodeCommand(c Command) ([]byte, error) {
	name := durableName(c)
	if name == "" {
		return nil, fmt.Errorf("encode command: %T is not durable", c)
	}
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode command %s: %w", name, err)
	}
	return json.Marshal(envelope{Name: name, Body: body})
}

// DecodeCommand reads what [EncodeCommand] wrote.
func DecodeCommand(data []byte) (Command, error) {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("decode command: %w", err)
	}
	c := durable(e.Name)
	if c == nil {
		return nil, fmt.Errorf("decode command: unknown command %q; it is from a newer version", e.Name)
	}
	if err := json.Unmarshal(e.Body, c); err != nil {
		return nil, fmt.Errorf("decode command %s: %w", e.Name, err)
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
