package registry

import "fmt"

// Code says what kind of refusal an [Error] is. Each front-end maps codes to
// its own status and text in one table.
type Code uint8

// The refusals of the core. Param and Value of the [Error] name what was wrong
// where the comment says so.
const (
	// InvalidArgument: Param has a value that cannot be accepted; Msg says why.
	InvalidArgument Code = iota + 1
	// InvalidServiceName: Value is a grouped service name with characters that
	// the asking API does not accept.
	InvalidServiceName
	// InvalidClusterName: Value is a cluster name with refused characters.
	InvalidClusterName
	// InvalidWeight: Value is not within 0 and 10000.
	InvalidWeight
	// InvalidMetadata: Value is neither a JSON object of scalars nor k=v pairs.
	InvalidMetadata
	// MetadataTooLarge: the metadata of one instance exceeds the limit, which is
	// Value; Msg names it and the size.
	MetadataTooLarge
	// InvalidSelector: Value is no known selector.
	InvalidSelector
	// ServiceNotFound: Value is the grouped name.
	ServiceNotFound
	// ServiceExists: Value is the grouped name.
	ServiceExists
	// ServiceNotEmpty: the service still has instances.
	ServiceNotEmpty
	// ServiceDisabled: the service answers no look-ups.
	ServiceDisabled
	// ClusterNotFound: Value is the cluster name.
	ClusterNotFound
	// InstanceNotFound: Value describes the instance.
	InstanceNotFound
	// KindMismatch: the service holds instances of the other kind only
	// (ephemeral or persistent).
	KindMismatch
	// HealthChecked: health cannot be set by hand while a probe or beats decide it.
	HealthChecked
	// RegistrationDisabled: the switch disableAddIP is on.
	RegistrationDisabled
	// NamespaceExists: Value is the namespace ID.
	NamespaceExists
	// NamespaceNotFound: Value is the namespace ID.
	NamespaceNotFound
	// InvalidSwitch: Param is the switch, Value the refused value.
	InvalidSwitch
	// UnknownSwitch: Param is no switch.
	UnknownSwitch
	// ClientClosed: the connection that sent the command is closed.
	ClientClosed
	// LimitExceeded: a configured limit is reached; Msg names it.
	LimitExceeded
	// MalformedSwitch: Value has not the form that the switch Param reads at all.
	MalformedSwitch
	// Unavailable: durable data cannot be changed at the moment, through no fault
	// of the caller.
	Unavailable
	// RefusedName: Param does not pass the check that 2.x and later make of every
	// call, whatever it is for; Msg is the sentence of that check.
	RefusedName
	// InvalidBeatTimes: an instance asks to be given up before its next beat.
	InvalidBeatTimes
)

// Error is a refusal that a client may see. Everything else that goes wrong is
// internal, and its text never leaves the server.
type Error struct {
	Code  Code
	Param string // the parameter at fault, when there is one
	Value string // the offending value or the name asked for
	Msg   string // a sentence for people; never empty
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Msg }

// Refuse builds an [Error].
func Refuse(code Code, param, value, format string, args ...any) *Error {
	return &Error{Code: code, Param: param, Value: value, Msg: fmt.Sprintf(format, args...)}
}
