package grpcv2

// The methods of the protocol. The proto file has no package.
const (
	UnaryService  = "Request"
	UnaryMethod   = "request"
	StreamService = "BiRequestStream"
	StreamMethod  = "requestBiStream"
)

// The types of requests that clients send.
const (
	ServerCheck        = "ServerCheckRequest"
	HealthCheck        = "HealthCheckRequest"
	ConnectionSetup    = "ConnectionSetupRequest"
	InstanceType       = "InstanceRequest"
	BatchInstance      = "BatchInstanceRequest"
	PersistentInstance = "PersistentInstanceRequest"
	ServiceQuery       = "ServiceQueryRequest"
	SubscribeService   = "SubscribeServiceRequest"
	ServiceList        = "ServiceListRequest"
	FuzzyWatch         = "NamingFuzzyWatchRequest"
	ConfigQuery        = "ConfigQueryRequest"
	ConfigListen       = "ConfigBatchListenRequest"
	ConfigPublish      = "ConfigPublishRequest"
	ConfigRemove       = "ConfigRemoveRequest"
)

// The types of answers to them.
const (
	ServerCheckResponse      = "ServerCheckResponse"
	HealthCheckResponse      = "HealthCheckResponse"
	ErrorResponse            = "ErrorResponse"
	InstanceResponse         = "InstanceResponse"
	BatchInstanceResponse    = "BatchInstanceResponse"
	QueryServiceResponse     = "QueryServiceResponse"
	SubscribeServiceResponse = "SubscribeServiceResponse"
	ServiceListResponse      = "ServiceListResponse"
	FuzzyWatchResponse       = "NamingFuzzyWatchResponse"
	ConfigQueryResponse      = "ConfigQueryResponse"
	ConfigListenResponse     = "ConfigChangeBatchListenResponse"
	ConfigPublishResponse    = "ConfigPublishResponse"
	ConfigRemoveResponse     = "ConfigRemoveResponse"
)

// The types of requests that the server sends on the stream.
const (
	SetupAck         = "SetupAckRequest"
	NotifySubscriber = "NotifySubscriberRequest"
	ClientDetection  = "ClientDetectionRequest"
	ConnectReset     = "ConnectResetRequest"
	FuzzyWatchSync   = "NamingFuzzyWatchSyncRequest"
	FuzzyWatchChange = "NamingFuzzyWatchChangeNotifyRequest"
)

// The types of acknowledgements of them, the last one being of both messages of fuzzy
// watches.
const (
	NotifySubscriberResponse = "NotifySubscriberResponse"
	ClientDetectionResponse  = "ClientDetectionResponse"
	ConnectResetResponse     = "ConnectResetResponse"
	FuzzyChangeResponse      = "NamingFuzzyWatchChangeNotifyResponse"
)

// The codes of the member errorCode.
const (
	CodeStarting     = 300
	CodeUnregistered = 301
	CodeNoHandler    = 302
	CodeInvalid      = 400
	CodeNotFound     = 404
	CodeServerError  = 500
	CodeNotSupported = 501
	CodeBadRequest   = 502
	// CodeDisconnected: the connection owns no naming client (any more).
	CodeDisconnected = -401
	// CodeConfigNotFound shares its number with CodeStarting.
	CodeConfigNotFound = 300
	// CodePatternLimit and CodeMatchLimit: too many fuzzy watches, or too many
	// services that match one.
	CodePatternLimit = 50310
	CodeMatchLimit   = 50311
)

// The values of the member resultCode.
const (
	ResultSuccess = 200
	ResultFailure = 500
)

// The values of the member type of instance requests.
const (
	Register      = "registerInstance"
	Deregister    = "deregisterInstance"
	BatchRegister = "batchRegisterInstance"
)
