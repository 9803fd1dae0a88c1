// Package fleet numbers the services and instances that a measurement is about, so
// that every part of it knows, without remembering them, what the server was sent:
// the same numbers and seed give the same names, addresses and metadata each time.
//
// All values are immutable and safe for concurrent use.
package fleet

import "strconv"

// Fleet is a set of services of equal size.
type Fleet struct {
	// Name begins the names of all services. It holds letters, digits and dashes.
	Name string
	// Group is that of all services.
	Group string
	// Services is how many there are, Size how many instances each has.
	Services, Size int
	// Owners is the number of clients that the instances are dealt out to, at least
	// 1. As long as Size is not above it, no client owns two instances of a service:
	// over gRPC a second one would replace the first.
	Owners int
	// Seed changes the metadata of instances and the order of services.
	Seed uint64
	// BeatTimeoutMillis, if it is not 0, is after how long without a beat the server
	// is asked to call an instance unhealthy, in milliseconds.
	BeatTimeoutMillis int
	// Distinct: no two instances have equal metadata.
	Distinct bool
	// Persistent instances stay until they are deregistered.
	Persistent bool
}

// Service is one service of a fleet.
type Service struct {
	Fleet *Fleet
	N     int // from 0
}

// Instance is one instance of a fleet.
type Instance struct {
	Service
	Host int // within the service, from 0
	// Revision is told by the weight, so that a change can be recognised: a server that
	// takes a registration again has to take the weight, which some do not do with
	// metadata. It is at most [MaxRevision].
	Revision int64
	// Disabled instances take no traffic: what a deployment does before it stops one.
	Disabled bool
}

// Len returns the number of instances.
func (f *Fleet) Len() int { return f.Services * f.Size }

// Service returns service n modulo their number.
func (f *Fleet) Service(n int) Service { return Service{f, n % f.Services} }

// Scattered returns service n in an order in which neighbours are far apart.
func (f *Fleet) Scattered(n int) Service {
	// The step is a prime above the number of services that a measurement may have, so
	// that all services come once before the first comes again.
	const step = 2_000_003
	return Service{f, int((uint64(n)*step + f.Seed) % uint64(f.Services))}
}

// Instance returns instance n modulo their number; neighbours are of different
// services.
func (f *Fleet) Instance(n int) Instance {
	n %= f.Len()
	return Instance{Service: Service{f, n % f.Services}, Host: n / f.Services}
}

// Index is the number by which [Fleet.Instance] returns the instance.
func (i Instance) Index() int { return i.Host*i.Fleet.Services + i.N }

// All returns all instances, in the order of [Fleet.Instance].
func (f *Fleet) All() []Instance {
	list := make([]Instance, f.Len())
	for n := range list {
		list[n] = f.Instance(n)
	}
	return list
}

// Rounds is how many instances an owner has at most: the numbers k of
// [Fleet.Owned].
func (f *Fleet) Rounds() int {
	return (f.Services + f.Owners - 1) / f.Owners * f.Size
}

// Owned returns instance k of an owner; ok is false where the last round of
// services has none for it. Over all owners and all k below Rounds, each instance
// comes exactly once.
func (f *Fleet) Owned(owner, k int) (i Instance, ok bool) {
	host := k % f.Size
	within := ((owner-host)%f.Owners + f.Owners) % f.Owners
	i = Instance{Service: Service{f, k/f.Size*f.Owners + within}, Host: host}
	return i, i.N < f.Services
}

// Owner returns who owns the instance, and which of the owner's it is: the reverse of
// [Fleet.Owned].
func (i Instance) Owner() (owner, k int) {
	f := i.Fleet
	return (i.N%f.Owners + i.Host) % f.Owners, i.N/f.Owners*f.Size + i.Host
}

// AppendName appends the name of the service, without its group: of one length for
// all services of a fleet.
func (s Service) AppendName(b []byte) []byte {
	b = append(b, s.Fleet.Name...)
	b = append(b, '-')
	return appendPadded(b, s.N)
}

// Name returns the name of the service, without its group.
func (s Service) Name() string { return string(s.AppendName(nil)) }

// Number returns the number of the service of a fleet that has this name, which may
// have the group in front; ok is false if it has none.
func (f *Fleet) Number(name string) (n int, ok bool) {
	if len(name) > len(f.Group)+2 && name[:len(f.Group)] == f.Group && name[len(f.Group):len(f.Group)+2] == "@@" {
		name = name[len(f.Group)+2:]
	}
	if len(name) <= len(f.Name) || name[:len(f.Name)] != f.Name || name[len(f.Name)] != '-' {
		return 0, false
	}
	n, err := strconv.Atoi(name[len(f.Name)+1:])
	return n, err == nil && n >= 0 && n < f.Services
}

// appendPadded appends a number with at least seven digits.
func appendPadded(b []byte, n int) []byte {
	for limit := 1_000_000; limit > n && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// AppendIP appends the address, one of the loopback network: a server that probes
// it disturbs nobody.
func (i Instance) AppendIP(b []byte) []byte {
	b = append(b, "127."...)
	b = strconv.AppendInt(b, int64(i.N>>8&0xff), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(i.N&0xff), 10)
	b = append(b, '.')
	return strconv.AppendInt(b, int64(1+i.Host%250), 10)
}

// IP returns the address.
func (i Instance) IP() string { return string(i.AppendIP(nil)) }

// Port returns the port. Nothing listens on it.
func (i Instance) Port() int { return 1 + i.Host/250 }

// The weight of revision 0 is 1, and each adds a hundredth: what servers of all kinds
// write with two digits. Source of the greatest: Nacos, Constants.MAX_WEIGHT_VALUE.
const (
	revisions   = 100 // in a weight of 1
	MaxRevision = (10_000 - 1) * revisions
)

// Weight is that of the instance.
func (i Instance) Weight() float64 { return 1 + float64(i.Revision)/revisions }

// AppendWeight appends the weight as clients write it.
func (i Instance) AppendWeight(b []byte) []byte {
	if i.Revision == 0 {
		return append(b, "1.0"...)
	}
	return strconv.AppendFloat(b, i.Weight(), 'f', 2, 64)
}

// The values of the zone, and how many versions are told apart: metadata of real
// fleets repeats itself.
const (
	zones    = 3
	versions = 7
)

// beatTimeout is the metadata by which an instance asks for a timeout of its own.
const beatTimeout = "preserved.heart.beat.timeout"

// distinct is the metadata by which instances differ when they are to.
const distinct = "instance"

// AppendMetadata appends the metadata as entries of a JSON object, with quote for
// quotation marks and comma and colon for the others: plain JSON and its escaped
// form in a query are one function.
func (i Instance) AppendMetadata(b []byte, quote, comma, colon string) []byte {
	entry := func(name string) {
		b = append(b, quote...)
		b = append(b, name...)
		b = append(b, quote...)
		b = append(b, colon...)
		b = append(b, quote...)
	}
	entry("preserved.register.source")
	b = append(b, "SPRING_CLOUD"...)
	b = append(b, quote...)
	b = append(b, comma...)
	entry("version")
	b = append(b, "1.4."...)
	b = strconv.AppendUint(b, (uint64(i.N)+i.Fleet.Seed)%versions, 10)
	b = append(b, quote...)
	b = append(b, comma...)
	entry("zone")
	b = append(b, "eu-west-1"...)
	b = append(b, 'a'+byte((uint64(i.Host)+i.Fleet.Seed)%zones))
	if i.Fleet.Distinct {
		b = append(b, quote...)
		b = append(b, comma...)
		entry(distinct)
		b = appendPadded(b, i.N*i.Fleet.Size+i.Host)
	}
	if n := i.Fleet.BeatTimeoutMillis; n > 0 {
		b = append(b, quote...)
		b = append(b, comma...)
		entry(beatTimeout)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, quote...)
}

// Metadata returns the metadata as a map.
func (i Instance) Metadata() map[string]string {
	m := map[string]string{
		"preserved.register.source": "SPRING_CLOUD",
		"version":                   "1.4." + strconv.FormatUint((uint64(i.N)+i.Fleet.Seed)%versions, 10),
		"zone":                      "eu-west-1" + string('a'+byte((uint64(i.Host)+i.Fleet.Seed)%zones)),
	}
	if i.Fleet.Distinct {
		m[distinct] = string(appendPadded(nil, i.N*i.Fleet.Size+i.Host))
	}
	if n := i.Fleet.BeatTimeoutMillis; n > 0 {
		m[beatTimeout] = strconv.Itoa(n)
	}
	return m
}
