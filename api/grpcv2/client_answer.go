package grpcv2

import "errors"

// Answer is what all answers of a server have, and the members that only some have.
// Its strings and Info are parts of the body that it was read from.
type Answer struct {
	ResultCode, ErrorCode int32
	Message, RequestID    string

	// ConnectionID and Negotiates are of ServerCheckResponse: the latter says that the
	// server answers an ability table with its own.
	ConnectionID string
	Negotiates   bool

	// Info is of QueryServiceResponse and SubscribeServiceResponse; see [Notify].
	Info []byte

	// Count is of ServiceListResponse, how many services there are on all pages, and
	// Names are those of the page, at most 65,536.
	Count int32
	Names []string
}

// maxNames bounds the names of one page.
const maxNames = 1 << 16

var errNames = errors.New("more than 65536 names")

// OK reports whether the server did what it was asked. It goes by the result code, as
// the SDK for Java does.
func (a *Answer) OK() bool { return a.ResultCode == ResultSuccess }

// ReadAnswer reads an answer of whatever type.
func ReadAnswer(body []byte) (a Answer, err error) {
	err = decode(body, a.member)
	return a, err
}

func (a *Answer) member(r *reader, name string) bool {
	switch name {
	case "resultCode":
		r.integer(&a.ResultCode)
	case "errorCode":
		r.integer(&a.ErrorCode)
	case "message":
		a.Message, _ = r.text()
	case "requestId":
		a.RequestID, _ = r.text()
	case "connectionId":
		a.ConnectionID, _ = r.text()
	case "supportAbilityNegotiation":
		r.boolean(&a.Negotiates)
	case "serviceInfo":
		a.Info = r.rawObject()
	case "count":
		r.integer(&a.Count)
	case "serviceNames":
		a.Names = r.names(maxNames, errNames)
	default:
		return false
	}
	return true
}

// Notify is NotifySubscriberRequest: a push.
type Notify struct {
	RequestID string
	// Namespace is what few servers say.
	Namespace string
	// Name and Group are of the list, the name as it stands there.
	Name, Group string
	// Info is the JSON object of the list as it came, a part of the body; nil if it was
	// null or absent. Only its end has been looked for, so it may be broken inside; see
	// [ReadServiceInfo].
	Info []byte
}

// ReadNotify reads a push.
func ReadNotify(body []byte) (n Notify, err error) {
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "requestId":
			n.RequestID, _ = r.text()
		case "namespace":
			n.Namespace, _ = r.text()
		case "serviceInfo":
			n.info(r)
		default:
			return false
		}
		return true
	})
	return n, err
}

// info reads the name of a list and passes over the rest.
func (n *Notify) info(r *reader) {
	r.peek()
	from := r.at
	given := r.members(func(r *reader, name string) bool {
		switch name {
		case "name":
			n.Name, _ = r.text()
		case "groupName":
			n.Group, _ = r.text()
		default:
			r.pass()
		}
		return true
	})
	if given && r.err == nil {
		n.Info = r.data[from:r.at]
	}
}

// ServerRequest is what a server asks of a client on the stream, other than pushes.
type ServerRequest struct {
	RequestID string

	// Abilities, of SetupAckRequest, are those that the server has.
	Abilities []string

	// Host and Port, of ConnectResetRequest, are the server to go to: its address and
	// its HTTP port; empty for any other.
	Host, Port string

	// Fuzzy is of NamingFuzzyWatchSyncRequest and NamingFuzzyWatchChangeNotifyRequest,
	// the latter being one change without a pattern.
	Fuzzy FuzzySync
}

// maxAbilities bounds an ability table, and maxContexts the changes in one message.
// Servers have four abilities and send ten changes.
const (
	maxAbilities = 64
	maxContexts  = 1 << 14
)

var errContexts = errors.New("more than 16384 services")

// ReadServerRequest reads such a request, of whatever type.
func ReadServerRequest(body []byte) (q ServerRequest, err error) {
	var only FuzzyChange
	err = decode(body, func(r *reader, name string) bool {
		switch name {
		case "requestId":
			q.RequestID, _ = r.text()
		case "abilityTable":
			r.members(q.ability)
		case "serverIp":
			q.Host, _ = r.text()
		case "serverPort":
			q.Port, _ = r.text()
		case "contexts":
			q.Fuzzy.Changes = r.contexts()
		default:
			return q.Fuzzy.member(r, name) || only.member(r, name)
		}
		return true
	})
	if only != (FuzzyChange{}) && err == nil {
		q.Fuzzy.Changes = append(q.Fuzzy.Changes, only)
	}
	return q, err
}

func (q *ServerRequest) ability(r *reader, name string) bool {
	var able bool
	r.boolean(&able)
	if able && len(q.Abilities) < maxAbilities {
		q.Abilities = append(q.Abilities, name)
	}
	return true
}

func (s *FuzzySync) member(r *reader, name string) bool {
	var n int32
	switch name {
	case "syncType":
		s.Kind, _ = r.text()
	case "groupKeyPattern":
		s.Pattern, _ = r.text()
	case "totalBatch":
		r.integer(&n)
		s.Batches = int(n)
	case "currentBatch":
		r.integer(&n)
		s.Batch = int(n)
	default:
		return false
	}
	return true
}

func (r *reader) contexts() (list []FuzzyChange) {
	if !r.array() {
		return nil
	}
	for r.element() {
		if len(list) == maxContexts {
			r.fail(errContexts)
			return nil
		}
		var c FuzzyChange
		if r.members(c.member) {
			list = append(list, c)
		}
	}
	return list
}

func (c *FuzzyChange) member(r *reader, name string) bool {
	switch name {
	case "serviceKey":
		c.Service, _ = r.text()
	case "changedType":
		c.Change, _ = r.text()
	default:
		return false
	}
	return true
}

// names reads an array of strings, without those that are null.
func (r *reader) names(most int, tooMany error) (list []string) {
	if !r.array() {
		return nil
	}
	for r.element() {
		if len(list) == most {
			r.fail(tooMany)
			return nil
		}
		if s, given := r.text(); given {
			list = append(list, s)
		}
	}
	return list
}

// rawObject passes over an object and returns its bytes; nil for null.
func (r *reader) rawObject() []byte {
	switch {
	case r.null():
		return nil
	case r.peek() != '{':
		r.fail(errShape)
		return nil
	}
	from := r.at
	if r.pass(); r.err != nil {
		return nil
	}
	return r.data[from:r.at]
}

// pass passes over the next value. Of an object or an array it only looks for the end,
// which is several times as fast as [reader.skip] and finds no fault inside.
func (r *reader) pass() {
	if c := r.peek(); c != '{' && c != '[' {
		r.text()
		return
	}
	n := closing(r.data[r.at:])
	if n < 0 {
		r.fail(errSyntax)
		return
	}
	r.at += n
}

// closing returns the length of the object or array that data begins with, -1 if it has
// no end.
func closing(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
