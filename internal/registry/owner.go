package registry

// OwnerKind is the kind of party whose registration keeps an instance alive.
type OwnerKind uint8

// The kinds of owners. An instance may have one HTTP owner, one durable owner
// and any number of connections; it goes when the last one goes.
const (
	// OwnerHTTP is a client that registered over HTTP and keeps the instance
	// alive with beats.
	OwnerHTTP OwnerKind = iota
	// OwnerConnection is a gRPC connection.
	OwnerConnection
	// OwnerDurable is the durable store: a persistent instance.
	OwnerDurable
)

// String names the kind in histories.
func (k OwnerKind) String() string {
	switch k {
	case OwnerHTTP:
		return "http"
	case OwnerConnection:
		return "connection"
	default:
		return "durable"
	}
}

// ClientID names a gRPC connection.
type ClientID string

// Owner is who keeps an instance alive. Client is set for connections only.
type Owner struct {
	Kind   OwnerKind `json:"kind"`
	Client ClientID  `json:"client,omitempty"`
}

// ephemeral reports whether the instances of such owners are ephemeral.
func (k OwnerKind) ephemeral() bool { return k != OwnerDurable }
