package registry

import "strings"

// Kind says which instances a service may hold.
type Kind uint8

// KindAny is a service that no v2, v3 or gRPC call has given a kind.
const (
	KindAny Kind = iota
	KindEphemeral
	KindPersistent
)

// ServiceInfo is what is set on a service, as opposed to who is in it. It is
// immutable once it is in a [Store].
type ServiceInfo struct {
	Metadata Metadata `json:"metadata,omitempty"`
	// ProtectThreshold: when the share of healthy instances is at or below it,
	// look-ups show all as healthy. Nominally 0 to 1; 1.x stores any number.
	ProtectThreshold float32  `json:"protectThreshold"`
	Selector         Selector `json:"selector"`
	Kind             Kind     `json:"kind,omitempty"`
	// Disabled services refuse look-ups (0.9 and 1.x).
	Disabled bool `json:"disabled,omitempty"`
	// Set: somebody has set these, as opposed to a service that came into being
	// with its first instance.
	Set bool `json:"set,omitempty"`
	// Legacy holds what only the 0.9 API knows; nil when it never set anything.
	Legacy *LegacyInfo `json:"legacy,omitempty"`
}

// blankInfo returns the settings of a service of a kind that nobody has set up.
func blankInfo(kind Kind) *ServiceInfo {
	return &ServiceInfo{Selector: Selector{Type: SelectorNone}, Kind: kind}
}

// LegacyInfo is what the 0.9 API stores with a service. Nothing but that API
// reads it.
type LegacyInfo struct {
	Owners             []string `json:"owners,omitempty"`
	Token              string   `json:"token,omitempty"`
	HealthCheckMode    string   `json:"healthCheckMode,omitempty"`
	EnableHealthCheck  bool     `json:"enableHealthCheck,omitempty"`
	DisableClientBeat  bool     `json:"disableClientBeat,omitempty"`
	ResetWeight        bool     `json:"resetWeight,omitempty"`
	UseSpecifiedURL    bool     `json:"useSpecifiedURL,omitempty"`
	ModifiedWallMillis int64    `json:"modified,omitempty"`
}

// Cluster is a named part of a service with its probe settings. It is immutable
// once it is in a [Store].
type Cluster struct {
	Name     string      `json:"name"`
	Checker  HealthCheck `json:"checker"`
	Metadata Metadata    `json:"metadata,omitempty"`
	// CheckPort is probed when UseInstancePort is false.
	CheckPort       int32 `json:"checkPort"`
	UseInstancePort bool  `json:"useInstancePort"`
	// DefaultPort and SiteGroup are carried for the 0.9 and catalog answers.
	DefaultPort int32  `json:"defaultPort"`
	SiteGroup   string `json:"siteGroup,omitempty"`
}

// defaultClusterPort is Nacos' default of defIPPort and defCkport.
const defaultClusterPort = 80

// NewCluster returns the settings of a cluster that nobody has configured: a
// TCP probe on the instance's own port.
func NewCluster(name string) *Cluster {
	return &Cluster{
		Name: name, Checker: HealthCheck{Type: CheckTCP},
		CheckPort: defaultClusterPort, UseInstancePort: true, DefaultPort: defaultClusterPort,
	}
}

// CheckType is the kind of server-side probe of a cluster.
type CheckType string

// The probes of Nacos.
const (
	CheckTCP   CheckType = "TCP"
	CheckHTTP  CheckType = "HTTP"
	CheckMySQL CheckType = "MYSQL"
	CheckNone  CheckType = "NONE"
)

// HealthCheck is a cluster's probe. Only the fields of its type count.
type HealthCheck struct {
	Type CheckType `json:"type"`
	// Path, Headers ("k:v" pairs joined by "|") and ExpectedCode are for HTTP.
	Path         string `json:"path,omitempty"`
	Headers      string `json:"headers,omitempty"`
	ExpectedCode int    `json:"expectedResponseCode,omitempty"`
	// User, Password and Command are for MYSQL.
	User     string `json:"user,omitempty"`
	Password string `json:"pwd,omitempty"`
	Command  string `json:"cmd,omitempty"`
}

// Selector chooses among instances by the labels of the asker. The zero value
// is the selector "none".
type Selector struct {
	Type       string   `json:"type"`
	Expression string   `json:"expression,omitempty"`
	Labels     []string `json:"labels,omitempty"`
}

// The selector types of Nacos.
const (
	SelectorNone  = "none"
	SelectorLabel = "label"
)

// maxExpression bounds a label expression, in bytes.
const maxExpression = 4096

// NewSelector validates a selector. A label expression is
// CONSUMER.label.x = PROVIDER.label.x, joined by &; an empty one filters nothing.
func NewSelector(kind, expression string) (Selector, error) {
	switch kind {
	case "", SelectorNone:
		return Selector{Type: SelectorNone}, nil
	case SelectorLabel:
		if len(expression) > maxExpression {
			return Selector{}, Refuse(InvalidSelector, "selector", "",
				"Param 'selector' is illegal, its expression has %d bytes and may have %d.", len(expression), maxExpression)
		}
		labels, err := parseLabels(expression)
		if err != nil {
			return Selector{}, err
		}
		return Selector{Type: SelectorLabel, Expression: expression, Labels: labels}, nil
	default:
		return Selector{}, Refuse(InvalidSelector, "selector", kind,
			"not match any type of selector! type %q is neither %q nor %q", kind, SelectorNone, SelectorLabel)
	}
}

func parseLabels(expression string) ([]string, error) {
	text := strings.Join(strings.Fields(expression), "")
	if text == "" {
		return nil, nil
	}
	var labels []string
	for term := range strings.SplitSeq(text, "&") {
		consumer, provider, _ := strings.Cut(term, "=")
		c, okC := strings.CutPrefix(consumer, "CONSUMER.label.")
		p, okP := strings.CutPrefix(provider, "PROVIDER.label.")
		if !okC || !okP || c == "" || c != p {
			return nil, Refuse(InvalidSelector, "selector", expression, "parse expression failed!")
		}
		labels = append(labels, c)
	}
	return labels, nil
}
