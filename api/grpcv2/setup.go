package grpcv2

// Setup is ConnectionSetupRequest, by which a client registers its connection.
type Setup struct {
	ClientVersion string // such as Nacos-Java-Client:v2.5.1
	Tenant        string
	// HasAbilities: the client has an ability table, be it empty, and waits for
	// SetupAckRequest.
	HasAbilities bool
	// Newer: the table has an ability of 3.x.
	Newer bool
	// Labels says what the connection is for; nil when absent.
	Labels map[string]string
}

// maxLabels bounds the labels of a connection. Real clients send four and a few
// of their own.
const maxLabels = 64

// newerAbilities are those that only clients of 3.x have.
var newerAbilities = []string{"fuzzyWatch", "lock", "mcp", "agent"}

// DecodeSetup reads a ConnectionSetupRequest. Its strings may be parts of body.
func DecodeSetup(body []byte) (s Setup, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "clientVersion":
			s.ClientVersion, _ = r.text()
		case "tenant":
			s.Tenant, _ = r.text()
		case "labels":
			s.Labels = r.labels()
		case "abilityTable":
			s.HasAbilities = r.members(s.ability)
		default:
			return false
		}
		return true
	})
	return s, err
}

func (s *Setup) ability(r *reader, name string) bool {
	var able bool
	r.boolean(&able)
	for _, newer := range newerAbilities {
		s.Newer = s.Newer || able && name == newer
	}
	return true
}

func (r *reader) labels() map[string]string {
	labels := map[string]string{}
	given := r.members(func(r *reader, name string) bool {
		value, given := r.text()
		if given && len(labels) < maxLabels {
			labels[name] = value
		}
		return true
	})
	if !given {
		return nil
	}
	return labels
}
