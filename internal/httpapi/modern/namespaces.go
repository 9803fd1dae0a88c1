package modern

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// NamespaceStyle is what the generations differ in when they show a namespace.
type NamespaceStyle struct {
	// PublicID is the ID of the default namespace in lists.
	PublicID string
	// CustomType is the number of the type of all others.
	CustomType int
}

// What is shown of a namespace and means nothing here. Source: Nacos
// NamespaceOperationService.
const (
	publicDescription = "Default Namespace"
	namespaceQuota    = 200
)

// NamespaceList answers all namespaces, the default one first.
func (a *API) NamespaceList(s NamespaceStyle) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		b := append(result.Begin(x.Scratch[:0]), '[')
		b = s.appendPublic(b, s.PublicID)
		for _, n := range a.Core.Store().Namespaces() {
			b = s.append(append(b, ','), n)
		}
		a.Data(x, append(b, ']'))
	}
}

// Namespace answers one namespace. The default one is shown with the ID by which
// it was asked for.
func (a *API) Namespace(s NamespaceStyle) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		f := result.NewParams(x)
		id := f.Need("namespaceId")
		if err := f.Err(); err != nil {
			a.Fail(x, err)
			return
		}
		if id == "" || id == s.PublicID {
			a.Data(x, s.appendPublic(result.Begin(x.Scratch[:0]), id))
			return
		}
		n, ok := a.Core.Store().NamespaceByID(id)
		if !ok {
			a.Fail(x, registry.Refuse(registry.NamespaceNotFound, "namespaceId", id, "namespace %s does not exist", id))
			return
		}
		a.Data(x, s.append(result.Begin(x.Scratch[:0]), n))
	}
}

func (s NamespaceStyle) appendPublic(b []byte, id string) []byte {
	return s.appendAs(b, registry.Namespace{ID: id, Name: registry.DefaultNamespace, Description: new(publicDescription)}, 0)
}

func (s NamespaceStyle) append(b []byte, n registry.Namespace) []byte {
	return s.appendAs(b, n, s.CustomType)
}

func (s NamespaceStyle) appendAs(b []byte, n registry.Namespace, kind int) []byte {
	b = append(b, `{"namespace":`...)
	b = registry.AppendJSONString(b, n.ID)
	b = append(b, `,"namespaceShowName":`...)
	b = registry.AppendJSONString(b, n.Name)
	b = append(b, `,"namespaceDesc":`...)
	if n.Description == nil {
		b = append(b, "null"...)
	} else {
		b = registry.AppendJSONString(b, *n.Description)
	}
	b = append(b, `,"quota":`...)
	b = strconv.AppendInt(b, namespaceQuota, 10)
	b = append(b, `,"configCount":0,"type":`...)
	return append(strconv.AppendInt(b, int64(kind), 10), '}')
}

// The longest texts of a namespace, in characters. Source: the columns of Nacos'
// tenant_info, beyond which it answers with an error of its database.
const (
	maxNamespaceID   = 128
	maxNamespaceName = 128
	maxNamespaceDesc = 256
)

// CreateNamespace adds a namespace to the list. An empty ID asks for one of the
// server's. twice is the refusal of an ID that is taken.
func (a *API) CreateNamespace(twice func(id string) error) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		n, err := namespaceForm(x, "namespaceId")
		if err == nil {
			err = checkNamespaceID(n.ID)
		}
		if err == nil {
			err = a.createNamespace(x, n, twice)
		}
		a.True(x, err)
	}
}

// CreateNamespaceConsole is CreateNamespace as the console has it, where the ID may
// be left out.
func (a *API) CreateNamespaceConsole(x *httpapi.Exchange) {
	n, err := namespaceForm(x, "")
	if err == nil {
		n.ID, _ = x.Params().Get("customNamespaceId")
		err = a.createNamespace(x, n, RefuseTaken)
	}
	a.True(x, err)
}

// RefuseTaken is the refusal of 3.x of an ID that is taken.
func RefuseTaken(id string) error {
	if id == registry.DefaultNamespace {
		return &result.Fault{
			Status: 400, Code: result.NamespaceExists,
			Data: "namespaceId [" + id + "] is default namespace id and already exist.",
		}
	}
	return registry.Refuse(registry.NamespaceExists, "namespaceId", id, "namespace %s exists", id)
}

func (a *API) createNamespace(x *httpapi.Exchange, n registry.Namespace, twice func(id string) error) error {
	n.ID = cmp.Or(n.ID, newUUID())
	if err := checkNamespaceName(n.Name); err != nil {
		return err
	}
	if n.ID == registry.DefaultNamespace {
		return twice(n.ID)
	}
	err := a.Core.CreateNamespace(x.Context(), a.Cause(x, "create namespace"), n)
	if IsRefusal(err, registry.NamespaceExists) {
		return twice(n.ID)
	}
	return err
}

// UpdateNamespace renames a namespace. One that nobody created is answered true
// too, and nothing happens.
func (a *API) UpdateNamespace(x *httpapi.Exchange) {
	n, err := namespaceForm(x, "namespaceId")
	if err == nil {
		err = checkNamespaceName(n.Name)
	}
	if err == nil {
		err = a.Core.UpdateNamespace(x.Context(), a.Cause(x, "update namespace"), n)
	}
	a.True(x, unlessMissing(err))
}

// DeleteNamespace takes a namespace off the list; its services stay. One that
// nobody created is answered true too.
func (a *API) DeleteNamespace(x *httpapi.Exchange) {
	f := result.NewParams(x)
	id := f.Need("namespaceId")
	err := f.Err()
	if err == nil {
		err = a.Core.DeleteNamespace(x.Context(), a.Cause(x, "delete namespace"), id)
	}
	a.True(x, unlessMissing(err))
}

func unlessMissing(err error) error {
	if IsRefusal(err, registry.NamespaceNotFound) {
		return nil
	}
	return err
}

// HasNamespace reports whether somebody created a namespace.
func (a *API) HasNamespace(id string) bool {
	_, taken := a.Core.Store().NamespaceByID(id)
	return taken
}

// namespaceForm reads a namespace, whose ID is in the parameter idParam unless that
// is empty. What must be there may be empty.
func namespaceForm(x *httpapi.Exchange, idParam string) (n registry.Namespace, err error) {
	p := x.Params()
	for _, field := range []struct {
		name string
		to   *string
	}{{idParam, &n.ID}, {"namespaceName", &n.Name}} {
		value, sent := p.Get(field.name)
		if !sent && field.name != "" {
			return n, result.Missing("required parameter '" + field.name + "' is missing")
		}
		*field.to = value
	}
	if desc, sent := p.Get("namespaceDesc"); sent {
		n.Description = &desc
		return n, checkLabel("namespaceDesc", desc, maxNamespaceDesc)
	}
	return n, nil
}

// checkNamespaceID refuses what is no ID with the words of the call itself; where
// the check of names is made first, it speaks of most.
func checkNamespaceID(id string) error {
	if len(id) > maxNamespaceID {
		return illegalNamespace("too long namespaceId, over " + strconv.Itoa(maxNamespaceID))
	}
	if id != "" && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") != "" {
		return illegalNamespace("namespaceId [" + id + "] mismatch the pattern")
	}
	return nil
}

func checkNamespaceName(name string) error {
	if name == "" || registry.CheckNamespaceNameV2(name) != nil {
		return illegalNamespace("namespaceName [" + name + "] contains illegal char")
	}
	return checkLabel("namespaceName", name, maxNamespaceName)
}

func illegalNamespace(text string) error {
	return &result.Fault{Status: 400, Code: result.IllegalNamespace, Data: text}
}

// checkLabel refuses a text for people that is over-long or is none.
func checkLabel(param, text string, most int) error {
	if n := len([]rune(text)); n > most {
		return illegalNamespace(fmt.Sprintf("%s has %d characters and may have %d", param, n, most))
	}
	if fault, ok := errors.AsType[*httpapi.ParamError](httpapi.CheckText(param, text)); ok {
		return illegalNamespace(fault.Error())
	}
	return nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails, see its documentation
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
