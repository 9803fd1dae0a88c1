package opsv1

// Clients is the answer of GET /rollcall/v1/clients.
type Clients struct {
	Clients []Client `json:"clients"`
	Total   int      `json:"total"` // on all pages
}

// Client is a client of the server. In a list it has the first ten of its instances
// and of its subscriptions; GET /rollcall/v1/clients/{id} has pages of them.
type Client struct {
	// ID is that of the APIs of 2.x and 3.x: that of the connection, or ip:port#true.
	ID string `json:"id"`
	// Protocol is how it comes: grpc, http (it registered and beats), or udp (it only
	// subscribes).
	Protocol string `json:"protocol"`
	// Address is where it is connected from, what it registered, or where packets go
	// to; empty for a connection that is remembered from before a restart.
	Address string `json:"address,omitempty"`
	// SDK and Version are read from Agent, as the client names itself; empty when
	// they are not known.
	SDK     string `json:"sdk,omitempty"`
	Version string `json:"version,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// What a connected client says of itself: its own address, its application, the
	// half of the SDK that connected, the namespace, and all its labels.
	IP        string            `json:"ip,omitempty"`
	App       string            `json:"app,omitempty"`
	Module    string            `json:"module,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Recalled: it is remembered from before a restart and has not come back.
	Recalled bool `json:"recalled,omitempty"`
	// Since is when it connected or began to subscribe. LastSeen is when it last gave
	// a sign of life, and SinceSeen how long ago; absent when that is not known.
	Since     int64  `json:"since,omitempty"`
	LastSeen  int64  `json:"lastSeen,omitempty"`
	SinceSeen *int64 `json:"sinceSeen,omitempty"`
	// Namespaces are those of what it registered and subscribed to.
	Namespaces []string `json:"namespaces"`
	// Registered and Subscribed count all that it has.
	Registered    int                  `json:"registered"`
	Subscribed    int                  `json:"subscribed"`
	Instances     []ClientInstance     `json:"instances"`
	Subscriptions []ClientSubscription `json:"subscriptions"`
	Pushes        ClientPushes         `json:"pushes"`
}

// ClientInstance is an instance that a client registered.
type ClientInstance struct {
	Service
	IP      string `json:"ip"`
	Port    int32  `json:"port"`
	Cluster string `json:"cluster"`
}

// ClientSubscription is a subscription of a client.
type ClientSubscription struct {
	Service
	Protocol string `json:"protocol"`
	Clusters string `json:"clusters,omitempty"`
	Since    int64  `json:"since"`
	// Refused says why nothing is ever sent for it.
	Refused string `json:"refused,omitempty"`
	// Acknowledged is the newest revision that the client acknowledged, At when, and
	// Lag how long that was after the change; absent when the push told of none.
	Acknowledged int64   `json:"acknowledged,omitempty"`
	At           int64   `json:"acknowledgedAt,omitempty"`
	Lag          float64 `json:"lag,omitempty"`
	// Waiting: a push is not acknowledged; WaitingFor is the age of the oldest change
	// in it.
	Waiting    bool    `json:"waiting,omitempty"`
	WaitingFor float64 `json:"waitingFor,omitempty"`
	// Failed is the newest revision that could not be brought to it, and Problem says
	// why.
	Failed  int64  `json:"failed,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// ClientPushes is how far the pushes to a client have come.
type ClientPushes struct {
	// AcknowledgedAt is when it last acknowledged a change, and Lag how long that was
	// after the change; absent when it has been told of none.
	AcknowledgedAt int64   `json:"acknowledgedAt,omitempty"`
	Lag            float64 `json:"lag,omitempty"`
	// Unacknowledged counts the services of which a push is not acknowledged, and
	// WaitingFor is the age of the oldest change in them.
	Unacknowledged int     `json:"unacknowledged"`
	WaitingFor     float64 `json:"waitingFor,omitempty"`
	// Failed counts the services whose newest push did not reach it.
	Failed int `json:"failed,omitempty"`
	// Refused says why it is never sent anything.
	Refused string `json:"refused,omitempty"`
}
