package grpcapi

import "github.com/rollcall-registry/rollcall/api/grpcv2"

// Clients and frameworks ask for configurations unasked, and a wrong answer makes
// them loop or refuse to start. So these calls get the answers that keep the
// naming half of a client well: there are no configurations, and none changes. A
// change is never said to be done.

// configQuery answers ConfigQueryRequest: there is no such configuration, which
// clients read as null.
func (x *call) configQuery() error {
	if err := grpcv2.DecodeEmpty(x.Body); err != nil {
		return decoded(err)
	}
	x.refuse(grpcv2.CodeConfigNotFound, "config data not exist")
	return nil
}

// configListen answers ConfigBatchListenRequest: nothing has changed.
func (x *call) configListen() error {
	if err := grpcv2.DecodeEmpty(x.Body); err != nil {
		return decoded(err)
	}
	x.answer.Type = x.route.response
	x.answer.Buf = grpcv2.AppendNoChange(x.answer.Buf)
	return nil
}

// configWrite answers requests to publish or remove a configuration.
func (x *call) configWrite() error {
	if err := grpcv2.DecodeEmpty(x.Body); err != nil {
		return decoded(err)
	}
	x.refuse(grpcv2.CodeNotSupported, "Rollcall is a service registry and keeps no configurations")
	return nil
}
