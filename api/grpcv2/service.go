package grpcv2

// ServiceHead is the part of a service that differs from one asker to the next.
// It is written before the part that all askers share; see [AppendServiceTail].
type ServiceHead struct {
	// Name is plain, without the group. It is echoed, as the other two are, and
	// left out when the request did not give it.
	Name, Group Optional
	// Clusters is echoed verbatim: clients key their cache by it.
	Clusters Optional
	// CacheMillis is how often a client without a subscription should ask.
	CacheMillis int64
	// Newer writes allIps as 3.x does, and not allIPs, which Rust insists on.
	Newer bool
}

func (s *ServiceHead) append(b []byte) []byte {
	b = append(b, `,"serviceInfo":{`...)
	b = s.Name.append(b, `"name":`)
	b = s.Group.append(b, `"groupName":`)
	b = s.Clusters.append(b, `"clusters":`)
	b = appendInt(append(b, `"cacheMillis":`...), s.CacheMillis)
	b = append(b, `,"checksum":"","valid":true,`...)
	if s.Newer {
		return append(b, `"allIps":false,`...)
	}
	return append(b, `"allIPs":false,`...)
}

// append appends a member and a comma, unless it is not given.
func (o *Optional) append(b []byte, name string) []byte {
	if !o.Given {
		return b
	}
	return append(appendString(append(b, name...), o.Value), ',')
}

// ServiceTail is the part of a service that all who ask alike share: it ends
// answers and pushes.
type ServiceTail struct {
	// LastRefTime grows with every change of the service.
	LastRefTime int64
	// Protected: so few hosts are healthy that all are shown so.
	Protected bool
}

// AppendServiceTail appends the end of a message with a service. hosts appends
// the instances with commas between them; nil appends none.
func AppendServiceTail(b []byte, t ServiceTail, hosts func([]byte) []byte) []byte {
	b = append(b, `"hosts":[`...)
	if hosts != nil {
		b = hosts(b)
	}
	b = appendInt(append(b, `],"lastRefTime":`...), t.LastRefTime)
	b = appendBool(append(b, `,"reachProtectionThreshold":`...), t.Protected)
	return append(b, `}}`...)
}
