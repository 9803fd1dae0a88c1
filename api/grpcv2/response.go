package grpcv2

// Every answer begins so. Go wants success:true, Rust both codes, Python no null;
// success is the first of the remaining members and not the last as in the
// original, so that what is shared between answers can end them.
const succeeded = `{"resultCode":200,"errorCode":0,"success":true`

// AppendSuccess appends an answer that says nothing else.
func AppendSuccess(b []byte) []byte { return append(append(b, succeeded...), '}') }

// Failure is why a request was not done.
type Failure struct {
	Result  int32 // the member resultCode
	Code    int32 // the member errorCode
	Message string
}

// AppendFailure appends an answer that tells of a failure. Its message is there
// even when it is empty.
func AppendFailure(b []byte, f *Failure) []byte { return append(appendFailure(b, f), '}') }

func appendFailure(b []byte, f *Failure) []byte {
	b = appendInt(append(b, `{"resultCode":`...), int64(f.Result))
	b = appendInt(append(b, `,"errorCode":`...), int64(f.Code))
	b = append(b, `,"success":false,"message":`...)
	return appendString(b, f.Message)
}

// AppendServerCheck appends the answer to ServerCheckRequest. Negotiation tells
// clients with an ability table to wait for SetupAckRequest.
func AppendServerCheck(b []byte, connectionID string) []byte {
	b = append(b, succeeded...)
	b = appendString(append(b, `,"connectionId":`...), connectionID)
	return append(b, `,"supportAbilityNegotiation":true}`...)
}

// AppendInstanceDone appends the answer to a request that registers or
// deregisters, which repeats its type.
func AppendInstanceDone(b []byte, requestType string) []byte {
	b = append(b, succeeded...)
	b = appendString(append(b, `,"type":`...), requestType)
	return append(b, '}')
}

// AppendServices appends the answer to ServiceListRequest: how many services
// there are on all pages, and the plain names of this one.
func AppendServices(b []byte, count int, names []string) []byte {
	b = append(b, succeeded...)
	b = appendInt(append(b, `,"count":`...), int64(count))
	b = append(b, `,"serviceNames":[`...)
	for n, name := range names {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
	}
	return append(b, `]}`...)
}

// AppendServicesRefused appends a failure of ServiceListRequest, which has a
// count all the same.
func AppendServicesRefused(b []byte, f *Failure) []byte {
	return append(appendFailure(b, f), `,"count":0}`...)
}

// AppendConfigMissing appends a failure of ConfigQueryRequest. The Rust SDK reads
// none without the members that follow the message.
func AppendConfigMissing(b []byte, f *Failure) []byte {
	return append(appendFailure(b, f), `,"lastModified":0,"beta":false}`...)
}

// AppendNoChange appends the answer to a request to listen to configurations of
// which none changes.
func AppendNoChange(b []byte) []byte {
	return append(append(b, succeeded...), `,"changedConfigs":[]}`...)
}

// AppendQueryHead appends the beginning of an answer with a service, to which a
// tail of [AppendServiceTail] belongs.
func AppendQueryHead(b []byte, s *ServiceHead) []byte {
	return s.append(append(b, succeeded...))
}

// AppendSubscribeHead is AppendQueryHead for SubscribeServiceResponse.
func AppendSubscribeHead(b []byte, s *ServiceHead) []byte {
	return s.append(append(append(b, succeeded...), `,"message":"success"`...))
}
