package grpcv2

import (
	"bytes"
	"maps"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
)

// schema is the proto file of the protocol, as protobuf's own library reads it.
func schema(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, message string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{
			Name: new(name), Number: new(number), Type: kind.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		if message != "" {
			f.TypeName = new(message)
		}
		return f
	}
	const text, message = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	headers := field("headers", 7, message, ".Metadata.HeadersEntry")
	headers.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("nacos_grpc_service.proto"), Syntax: new("proto3"),
		Dependency: []string{"google/protobuf/any.proto"},
		MessageType: []*descriptorpb.DescriptorProto{
			{
				Name: new("Metadata"),
				Field: []*descriptorpb.FieldDescriptorProto{
					field("type", 3, text, ""), headers, field("clientIp", 8, text, ""),
				},
				NestedType: []*descriptorpb.DescriptorProto{{
					Name:    new("HeadersEntry"),
					Field:   []*descriptorpb.FieldDescriptorProto{field("key", 1, text, ""), field("value", 2, text, "")},
					Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
				}},
			},
			{
				Name: new("Payload"),
				Field: []*descriptorpb.FieldDescriptorProto{
					field("metadata", 2, message, ".Metadata"), field("body", 3, message, ".google.protobuf.Any"),
				},
			},
		},
	}, filesWithAny{})
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("Payload")
}

// filesWithAny resolves the one import of the schema.
type filesWithAny struct{}

func (filesWithAny) FindFileByPath(string) (protoreflect.FileDescriptor, error) {
	return anypb.File_google_protobuf_any_proto, nil
}

func (filesWithAny) FindDescriptorByName(protoreflect.FullName) (protoreflect.Descriptor, error) {
	return (&anypb.Any{}).ProtoReflect().Descriptor(), nil
}

// plain is a Payload with nothing hidden.
type plain struct {
	kind, clientIP string
	headers        map[string]string
	body           string
}

func ours(data []byte) (plain, error) {
	var p Payload
	if err := p.Unmarshal(data); err != nil {
		return plain{}, err
	}
	return plain{p.Type, p.ClientIP, maps.Collect(p.Headers()), string(p.Body)}, nil
}

func theirs(schema protoreflect.MessageDescriptor, data []byte) (plain, error) {
	m := dynamicpb.NewMessage(schema)
	if err := proto.Unmarshal(data, m); err != nil {
		return plain{}, err
	}
	get := func(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
		return m.Get(m.Descriptor().Fields().ByName(name))
	}
	metadata := get(m, "metadata").Message()
	p := plain{
		kind: get(metadata, "type").String(), clientIP: get(metadata, "clientIp").String(),
		headers: map[string]string{}, body: string(get(get(m, "body").Message(), "value").Bytes()),
	}
	get(metadata, "headers").Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		p.headers[k.String()] = v.String()
		return true
	})
	return p, nil
}

func same(a, b plain) bool {
	return a.kind == b.kind && a.clientIP == b.clientIP && a.body == b.body && maps.Equal(a.headers, b.headers)
}

func payloads() []plain {
	return []plain{
		{},
		{kind: ServerCheck},
		{kind: HealthCheck, clientIP: "10.0.0.7", body: "{}"},
		{body: "{}"},
		{kind: InstanceType, clientIP: "::1", headers: map[string]string{"accessToken": "x", "app": "", "": "y"}, body: `{"a":1}`},
		{kind: "é", body: string(bytes.Repeat([]byte("x"), 300))},
	}
}

func (p plain) head() *Head { return &Head{Type: p.kind, ClientIP: p.clientIP, Headers: p.headers} }

func TestPayloadIsProtobuf(t *testing.T) {
	schema := schema(t)
	for _, p := range payloads() {
		data := AppendPayload(nil, p.head(), []byte(p.body))
		for name, read := range map[string]func([]byte) (plain, error){
			"ours":   ours,
			"theirs": func(b []byte) (plain, error) { return theirs(schema, b) },
		} {
			got, err := read(data)
			if err != nil || !same(got, p) {
				t.Errorf("%s: got %+v, %v; want %+v", name, got, err, p)
			}
		}
	}
}

func TestPayloadRepeatedFields(t *testing.T) {
	first := AppendPayload(nil, &Head{Type: "a", ClientIP: "1", Headers: map[string]string{"x": "1", "y": "1"}}, []byte("one"))
	second := AppendPayload(nil, &Head{Type: "b", Headers: map[string]string{"x": "2"}}, []byte("two"))
	data := append(first, second...)
	kept := bytes.Clone(data)
	got, err := ours(data)
	want := plain{kind: "b", clientIP: "1", headers: map[string]string{"x": "2", "y": "1"}, body: "two"}
	if err != nil || !same(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if !bytes.Equal(data, kept) {
		t.Error("the message was changed by reading it")
	}
	var p Payload
	if err := p.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	if v, ok := p.Header("x"); v != "2" || !ok {
		t.Errorf("header x: %q, %v", v, ok)
	}
	if _, ok := p.Header("X"); ok {
		t.Error("the names of headers are not case sensitive")
	}
	for range p.Headers() {
		break
	}
}

func FuzzPayload(f *testing.F) {
	schema := schema(f)
	for _, p := range payloads() {
		f.Add(AppendPayload(nil, p.head(), []byte(p.body)))
	}
	f.Add([]byte{0x12, 0x03, 0x3a, 0x01, 0x0b})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ours(data)
		want, wantErr := theirs(schema, data)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("error %v, protobuf says %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if !same(got, want) {
			t.Fatalf("got %+v, protobuf reads %+v", got, want)
		}
		again, err := ours(AppendPayload(nil, got.head(), []byte(got.body)))
		if err != nil || !same(got, again) {
			t.Fatalf("encoded and read again: %+v, %v; want %+v", again, err, got)
		}
	})
}

func BenchmarkPayload(b *testing.B) {
	data := AppendPayload(nil, &Head{Type: InstanceType, ClientIP: "10.0.0.7", Headers: map[string]string{"app": "unknown"}}, make([]byte, 400))
	b.ReportAllocs()
	var p Payload
	for b.Loop() {
		if err := p.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
	}
}
