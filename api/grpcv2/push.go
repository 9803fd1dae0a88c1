package grpcv2

import "strconv"

// Requests of the server have headers, which Rust insists on, and a requestId
// that is unique within the connection.
const requested = `{"headers":{}`

const (
	internalModule = `,"module":"internal"`
	namingModule   = `,"module":"naming"`
)

func appendRequest(b []byte, id uint64, module string) []byte {
	b = append(b, requested...)
	b = append(b, module...)
	b = append(b, `,"requestId":"`...)
	return append(strconv.AppendUint(b, id, 10), '"')
}

// AppendSetupAck appends SetupAckRequest, which has no requestId, with the names
// of what the server is able to do.
func AppendSetupAck(b []byte, abilities ...string) []byte {
	b = append(append(append(b, requested...), internalModule...), `,"abilityTable":{`...)
	for n, ability := range abilities {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, ability), `:true`...)
	}
	return append(b, `}}`...)
}

// The abilities of a server that clients know.
const (
	AbilityPersistent = "supportPersistentInstanceByGrpc"
	AbilityFuzzyWatch = "fuzzyWatch"
)

// AppendNotifyHead appends the beginning of NotifySubscriberRequest, to which a
// tail of [AppendServiceTail] belongs.
func AppendNotifyHead(b []byte, id uint64, s *ServiceHead) []byte {
	return s.append(appendRequest(b, id, namingModule))
}

// AppendClientDetection appends ClientDetectionRequest.
func AppendClientDetection(b []byte, id uint64) []byte {
	return append(appendRequest(b, id, internalModule), '}')
}

// AppendConnectReset appends ConnectResetRequest. host and port name the server
// to go to; both are strings on the wire, and absent when host is empty.
func AppendConnectReset(b []byte, id uint64, host, port string) []byte {
	b = appendRequest(b, id, internalModule)
	if host != "" {
		b = appendString(append(b, `,"serverIp":`...), host)
		b = appendString(append(b, `,"serverPort":`...), port)
	}
	return append(b, '}')
}

// What a NamingFuzzyWatchSyncRequest is about.
const (
	SyncInit   = "FUZZY_WATCH_INIT_NOTIFY"
	SyncFinish = "FINISH_FUZZY_WATCH_INIT_NOTIFY"
	SyncDiff   = "FUZZY_WATCH_DIFF_SYNC_NOTIFY"
)

// What happened to a service that a fuzzy watch matches.
const (
	AddService    = "ADD_SERVICE"
	DeleteService = "DELETE_SERVICE"
)

// The kinds of fuzzy watch requests.
const (
	Watch       = "WATCH"
	CancelWatch = "CANCEL_WATCH"
)

// FuzzyChange is one service that a client is told of.
type FuzzyChange struct {
	Service string // namespace@@group@@service
	Change  string // AddService or DeleteService
}

// FuzzySync is one batch of what a fuzzy watch matches.
type FuzzySync struct {
	Kind    string // SyncInit, SyncFinish or SyncDiff
	Pattern string
	Changes []FuzzyChange
	// Batch is the number of this batch, from 1, of Batches.
	Batch, Batches int
}

// AppendFuzzySync appends NamingFuzzyWatchSyncRequest.
func AppendFuzzySync(b []byte, id uint64, s *FuzzySync) []byte {
	b = appendRequest(b, id, namingModule)
	b = appendString(append(b, `,"syncType":`...), s.Kind)
	b = appendString(append(b, `,"groupKeyPattern":`...), s.Pattern)
	b = append(b, `,"contexts":[`...)
	for n, c := range s.Changes {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(appendFuzzyChange(append(b, '{'), c), '}')
	}
	b = appendInt(append(b, `],"totalBatch":`...), int64(s.Batches))
	b = appendInt(append(b, `,"currentBatch":`...), int64(s.Batch))
	return append(b, '}')
}

// AppendFuzzyNotify appends NamingFuzzyWatchChangeNotifyRequest.
func AppendFuzzyNotify(b []byte, id uint64, c FuzzyChange) []byte {
	b = appendRequest(b, id, namingModule)
	b = append(b, `,"syncType":"FUZZY_WATCH_RESOURCE_CHANGED",`...)
	return append(appendFuzzyChange(b, c), '}')
}

func appendFuzzyChange(b []byte, c FuzzyChange) []byte {
	b = appendString(append(b, `"serviceKey":`...), c.Service)
	return appendString(append(b, `,"changedType":`...), c.Change)
}
