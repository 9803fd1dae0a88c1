package grpcv2

// Instance is an instance as clients write it in requests. Members that the
// server computes are not read.
type Instance struct {
	ID      string // as the client chose it; usually empty
	IP      string
	Cluster Optional
	// Service is group@@service, or nothing.
	Service string
	// Metadata is a JSON object, or nothing. Its values are any scalars, of which
	// null stands for no entry.
	Metadata []byte
	Weight   float64 // 1 when absent
	Port     int32
	Healthy  bool // true when absent, as is Enabled
	Enabled  bool
}

// instance reads an instance, nil for null.
func (r *reader) instance() *Instance {
	i := &Instance{Weight: 1, Healthy: true, Enabled: true}
	if !r.members(i.member) {
		return nil
	}
	return i
}

func (i *Instance) member(r *reader, name string) bool {
	switch name {
	case "instanceId":
		i.ID, _ = r.text()
	case "ip":
		i.IP, _ = r.text()
	case "port":
		r.integer(&i.Port)
	case "weight":
		r.number(&i.Weight)
	case "healthy":
		r.boolean(&i.Healthy)
	case "enabled":
		r.boolean(&i.Enabled)
	case "clusterName":
		i.Cluster = r.optional()
	case "serviceName":
		i.Service, _ = r.text()
	case "metadata":
		i.Metadata = r.stringMap()
	default:
		return false
	}
	return true
}

// stringMap checks an object whose values are scalars and returns its bytes; nil
// for null.
func (r *reader) stringMap() []byte {
	r.peek()
	from := r.at
	if !r.object() {
		return nil
	}
	for {
		if _, ok := r.member(); !ok {
			break
		}
		r.text()
	}
	return r.data[from:r.at]
}

// Host is an instance as the server lists it.
type Host struct {
	// ID is absent when it is nil.
	ID       []byte
	IP       string
	Cluster  string
	Service  string // group@@service
	Metadata string // a JSON object of strings
	Weight   float64
	Port     int32
	Healthy  bool
	Enabled  bool
	// Ephemeral instances live as long as their client says so.
	Ephemeral bool
	// The life times that the instance asks for, or the defaults, in milliseconds.
	BeatIntervalMillis, BeatTimeoutMillis, DeleteTimeoutMillis int64
	// IDGenerator is absent when empty.
	IDGenerator string
}

// AppendHost appends an instance. Every member but the ID and its generator is
// there: SDKs differ in which of them they insist on.
func AppendHost(b []byte, h *Host) []byte {
	b = append(b, '{')
	if h.ID != nil {
		b = append(b, `"instanceId":`...)
		b = append(appendString(b, alias(h.ID)), ',')
	}
	b = append(b, `"ip":`...)
	b = appendString(b, h.IP)
	b = appendInt(append(b, `,"port":`...), int64(h.Port))
	b = appendDouble(append(b, `,"weight":`...), h.Weight)
	b = appendBool(append(b, `,"healthy":`...), h.Healthy)
	b = appendBool(append(b, `,"enabled":`...), h.Enabled)
	b = appendBool(append(b, `,"ephemeral":`...), h.Ephemeral)
	b = appendString(append(b, `,"clusterName":`...), h.Cluster)
	b = appendString(append(b, `,"serviceName":`...), h.Service)
	b = append(append(b, `,"metadata":`...), h.Metadata...)
	b = appendInt(append(b, `,"instanceHeartBeatInterval":`...), h.BeatIntervalMillis)
	b = appendInt(append(b, `,"instanceHeartBeatTimeOut":`...), h.BeatTimeoutMillis)
	b = appendInt(append(b, `,"ipDeleteTimeout":`...), h.DeleteTimeoutMillis)
	if h.IDGenerator != "" {
		b = appendString(append(b, `,"instanceIdGenerator":`...), h.IDGenerator)
	}
	return append(b, '}')
}
