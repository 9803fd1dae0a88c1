package result

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// plain is a dialect that shows what it was given.
type plain struct{}

func (plain) Form(_ *httpapi.Exchange, form string, list []Mismatch) string {
	return strings.Join(FieldErrors(form, list, false), " & ")
}

func (plain) Param(_ *httpapi.Exchange, m Mismatch) string { return ParamText(m, true) }

func (plain) Decode(e *DecodeError) string { return DecodeText(e, "where") }

// ask sends a query, or a form when its method is POST, to a handler.
func ask(t *testing.T, h httpapi.Handler, method, params string, headers ...string) httpapitest.WireAnswer {
	t.Helper()
	server := httpapitest.Server(t, httpapi.DefaultConfig(), httpapi.Hooks{}, httpapi.Route{
		Methods: []string{method}, Path: "/call", Resource: httpapi.Open, Action: httpapi.Read, Handler: h,
	})
	r := httpapitest.WireRequest{Method: method, Target: "/call?" + httpapitest.EscapeTarget(params), Headers: headers}
	return httpapitest.Ask(t, server, r)
}

func TestCodes(t *testing.T) {
	seen := map[string]Code{}
	for _, c := range []Code{
		Success, ParameterMissing, AccessDenied, ParameterInvalid, MediaType, ResourceNotFound, WeightError,
		InstanceNotFound, InstanceError, SelectorError, ServiceExists, ServiceNotExist, ServiceDelete,
		IllegalNamespace, NamespaceNotExist, NamespaceExists, IllegalState, ServerError,
	} {
		message := c.Message()
		if other, twice := seen[message]; message == "" || twice {
			t.Errorf("%d: message %q, which %d has too", c, message, other)
		}
		seen[message] = c
	}
	if got := Code(1).Message(); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestFail has an answer for each kind of refusal.
func TestFail(t *testing.T) {
	const jsonType, most = "application/json", 2 << 10
	long := strings.Repeat("ü", most)
	var log bytes.Buffer
	answers := NewAnswers(plain{}, slog.New(slog.NewTextHandler(&log, nil)))
	for _, tt := range []struct {
		name   string
		err    error
		accept string
		status int
		kind   string
		want   string // a part of the body
	}{
		{"a fault", Missing("a is missing"), "", 400, jsonType, `{"code":10000,"message":"parameter missing","data":"a is missing"}`},
		{"wrapped", errors.Join(Invalid(`"<b>"`)), "*/*", 400, jsonType, `{"code":20002,"message":"parameter validate error","data":"\"<b>\""}`},
		{"for a browser", Invalid("<b>"), "text/html", 500, "text/html", "&lt;b&gt;"},
		{"for any JSON", Invalid("x"), "application/vnd.x+json", 400, jsonType, `"data":"x"`},
		{"for any application", Invalid("x"), "application/*;q=0.1", 400, jsonType, `"data":"x"`},
		{
			"of a form", &FormError{"f", []Mismatch{{"b", "x", JavaDouble}, {"a", "no", JavaBoolean}}}, "", 500, jsonType,
			`{"code":30000,"message":"Field error in object 'f' on field 'a': rejected value [no]; codes [typeMismatch.f.a,typeMismatch.a,typeMismatch.java.lang.Boolean,typeMismatch]; `,
		},
		{
			"of a parameter", &ParamError{Mismatch{"a", "x", JavaInteger}}, "", 500, jsonType,
			`{"code":30000,"message":"Failed to convert value of type 'java.lang.String' to required type 'java.lang.Integer'; nested exception is java.lang.NumberFormatException: For input string: \"x\"","data":null}`,
		},
		{"of a parameter, for a browser", &ParamError{Mismatch{"a", "x", JavaInteger}}, "text/html", 500, "text/html", "Failed to convert value"},
		{
			"of JSON", &DecodeError{"C", " zz", errors.New("no JSON")}, "", 500, jsonType,
			`"message":"errCode: 101, errMsg: Nacos deserialize for class [C] failed, cause error[Unrecognized token 'zz'`,
		},
		{"of JSON that is cut off", &DecodeError{"C", "{", errors.New("no JSON")}, "", 500, jsonType, "cause error[no JSON]."},
		{"a name", registry.Refuse(registry.RefusedName, "ip", "", "Param 'ip' is illegal."), "text/html", 400, "", "Param 'ip' is illegal.\r\n"},
		{"much metadata", registry.Refuse(registry.MetadataTooLarge, "metadata", "7", "too large"), "", 400, "", "Param 'Metadata' is illegal, the param length should not exceed 7.\r\n"},
		{"no metadata", registry.Refuse(registry.InvalidMetadata, "metadata", "", "no metadata"), "", 500, jsonType, "ErrCode:400, ErrMsg:no metadata"},
		{"a service", registry.Refuse(registry.ServiceNotFound, "serviceName", "g@@s", "x"), "", 400, jsonType, `{"code":21008,"message":"service not exist","data":"service g@@s not found!"}`},
		{"an instance", registry.Refuse(registry.InstanceNotFound, "ip", "", "no instance"), "", 404, jsonType, `{"code":20004,`},
		{"a limit", registry.Refuse(registry.LimitExceeded, "", "", "too many"), "", 400, jsonType, `"data":"too many"}`},
		{"a long text", Invalid(long), "", 400, jsonType, "ü…\"}"},
		{"anything else", errors.New("disk /var/x is full"), "", 500, jsonType, `{"code":30000,"message":"server error","data":"internal error, see the server's log"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, func(x *httpapi.Exchange) { answers.Fail(x, tt.err) }, http.MethodGet, "", "Accept", tt.accept)
			if got.Status != tt.status || !strings.HasPrefix(got.ContentType, tt.kind) || tt.kind == "" && got.ContentType != "" ||
				!strings.Contains(got.Body, tt.want) || len(got.Body) > most+1000 {
				t.Errorf("got %d %q\n%s\nwant %d %q\n%s", got.Status, got.ContentType, got.Body, tt.status, tt.kind, tt.want)
			}
		})
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "disk /var/x is full") {
		t.Errorf("logged %q", text)
	}
}

// TestRefusalsHaveAnswers: whatever the core refuses has a status, a code and a text.
func TestRefusalsHaveAnswers(t *testing.T) {
	for code := registry.Code(1); code < registry.Code(100); code++ {
		f := faultOf(&registry.Error{Code: code, Msg: "m", Value: "v"})
		if f.Data == "" || f.Code.Message() == "" || f.Status < 400 {
			t.Errorf("code %d: %+v", code, f)
		}
	}
}

// TestForm reads a form, and the same parameters each on its own.
func TestForm(t *testing.T) {
	for _, tt := range []struct{ name, query, form, alone string }{
		{"all there", "t=a&i=1&f=0.5&b=yes&p=7", "", ""},
		{"blanks count not", "t=+a+&i=+1&f=1e2+&b=TRUE&p=+0+", "", ""},
		{"Java's doubles", "t=a&i=1&f=0x1p3&b=on&p=1", "", ""},
		{"nothing", "", "Required parameter 't' type String is not present", "Required request parameter 't' for method parameter type String is not present"},
		{"empty", "t=&i=1&f=1&b=1&p=1", "Required parameter 't' type String is not present", ""},
		{"the first missing", "t=a", "Required parameter 'i' type Integer is not present", "Required request parameter 'i' for method parameter type Integer is not present"},
		{"an empty number", "t=a&i=1&f=+&b=1&p=1", "Required parameter 'f' type Double is not present", "Required request parameter 'f' for method parameter type Double is not present"},
		{"a flag", "t=a&i=1&f=1&p=1", "Required parameter 'b' type Boolean is not present", "Required request parameter 'b' for method parameter type Boolean is not present"},
		{"a plain number", "t=a&i=1&f=1&b=0", "Required parameter 'p' type int is not present", "Required request parameter 'p' for method parameter type int is not present"},
		{"wrong before missing", "i=x", `i: For input string: "x"`, "Required request parameter 't' for method parameter type String is not present"},
		{"above 32 bits", "t=a&i=2147483648&f=1&b=1&p=1", `i: For input string: "2147483648"`, `i: For input string: "2147483648"`},
		{"no flag", "t=a&i=1&f=1&b=ja&p=1", "b: Invalid boolean value [ja]", "b: Invalid boolean value [ja]"},
		{"no double", "t=a&i=1&f=1,5&b=1&p=1", `f: For input string: "1,5"`, `f: For input string: "1,5"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var form, alone error
			ask(t, func(x *httpapi.Exchange) {
				for f, err := range map[*Form]*error{NewForm(x, "f"): &form, NewParams(x): &alone} {
					f.Need("t")
					f.NeedInt("i")
					f.NeedFloat("f")
					f.NeedBool("b")
					f.NeedPlainInt("p")
					*err = copied(f.Err())
				}
			}, http.MethodGet, tt.query)
			if got := text(form); got != tt.form {
				t.Errorf("form: got %q, want %q", got, tt.form)
			}
			if got := text(alone); got != tt.alone {
				t.Errorf("alone: got %q, want %q", got, tt.alone)
			}
		})
	}
}

// copied is err without the memory of the request.
func copied(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.Clone(err.Error()))
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFormDefaults(t *testing.T) {
	ask(t, func(x *httpapi.Exchange) {
		f := NewForm(x, "f")
		if f.Text("t", "d") != "d" || f.Int("i", JavaInteger, 3) != 3 || f.Float("f", JavaDouble, 0.5) != 0.5 || !f.Bool("b", JavaBoolean, true) {
			t.Error("defaults are not taken")
		}
		if f.Sent("t") || !f.Sent("i") {
			t.Error("an empty parameter was sent, a missing one was not")
		}
		f.Refuse(Invalid("one"))
		f.Refuse(Invalid("two"))
		if err := f.Err(); err == nil || err.Error() != "one" {
			t.Errorf("got %v", err)
		}
	}, http.MethodGet, "i=&b=+")
}

// TestLongValuesAreCut: an answer repeats a part of a value only, and in UTF-8.
func TestLongValuesAreCut(t *testing.T) {
	m := mismatch("a", strings.Repeat("ü", maxShown), JavaInteger)
	if len(m.Value) > maxShown || !strings.HasSuffix(m.Value, "ü") {
		t.Errorf("got %d bytes", len(m.Value))
	}
	if m := mismatch("a", "\xff", JavaInteger); m.Value != "\ufffd" {
		t.Errorf("got %q", m.Value)
	}
}

func TestChecks(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		check       Check
		want        string // a part of the refusal; empty: none
	}{
		{"plain", "serviceName=svc&groupName=g&ip=1.1.1.1&port=1&clusterName=c&namespaceId=ns", CheckNaming, ""},
		{"nothing", "", CheckNaming, ""},
		{"metadata first", "metadata=x&serviceName=a b", CheckNaming, "metadata"},
		{"a group in front", "serviceName=a:b@@c d", CheckNaming, "Param 'serviceName' is illegal"},
		{"its group", "serviceName=a@@b&groupName=c", CheckNaming, ""},
		{"a bad group in front", "serviceName=a b@@c", CheckNaming, "Param 'group' is illegal"},
		{"another name of the service", "serviceNameParam=a%00b", CheckNaming, "Param 'serviceName' is illegal"},
		{"another name of the group", "groupNameParam=a/b", CheckNaming, "Param 'group' is illegal"},
		{"another name of the cluster", "cluster=a/b", CheckNaming, "Param 'cluster' is illegal"},
		{"another name of the port", "checkPort=65536", CheckNaming, "Param 'port' is illegal"},
		{"a namespace", "namespaceId=a/b", CheckNaming, "Param 'namespaceId/tenant' is illegal"},
		{"an address", "ip=a b", CheckNaming, "Param 'ip' is illegal"},
		{"clusters", "clusters=a,b/c", CheckList, "Param 'cluster' is illegal"},
		{"clusters with blanks", "clusters=a,+b,,", CheckList, ""},
		{"no look at metadata", "metadata=x", CheckList, ""},
		{"a beat's port", "port=x", CheckBeat, "Param 'port' is illegal"},
		{"no look at its cluster", "clusterName=a/b", CheckBeat, ""},
		{"a batch's metadata", "metadata=x", CheckBatch, "metadata"},
		{"a name of a namespace", "namespaceName=a^b", CheckNamespace, "Param 'namespaceShowName' is illegal"},
		{"a custom ID", "customNamespaceId=a/b", CheckNamespace, "Param 'namespaceId/tenant' is illegal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			ask(t, func(x *httpapi.Exchange) { err = copied(tt.check(x.Params())) }, http.MethodGet, tt.query)
			if got := text(err); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLeadingToken(t *testing.T) {
	for text, want := range map[string]string{
		"zz": "zz", "  zz{": "zz", "": "", "{": "", "true": "", "null ": "", "1a": "", "nulls": "nulls", "$a_1-b": "$a_1", "ü": "",
	} {
		if got := leadingToken(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := column("  zz", "zz"); got != "5" {
		t.Errorf("got column %s", got)
	}
}
