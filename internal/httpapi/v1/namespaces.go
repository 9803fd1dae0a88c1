package v1

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Fields of a namespace that 1.x shows and that mean nothing here: a quota of
// configurations, and how many there are. Source: Nacos NamespaceController.
const (
	namespaceQuota = 200
	globalType     = 0 // of the default namespace
	customType     = 2
)

// namespaceViews answers GET /console/namespaces: the list, or with show=all one
// namespace, or with checkNamespaceIdExist whether an ID is taken.
func (a *API) namespaceViews(x *httpapi.Exchange) {
	p := x.Params()
	show, _ := p.Raw("show")
	exists, _ := p.Raw("checkNamespaceIdExist")
	switch {
	case show == "all":
		a.namespaceView(x)
	case exists == "true":
		a.namespaceExists(x)
	default:
		a.namespaceList(x)
	}
}

// namespaceList answers with the default namespace, whose ID is empty here, and
// those that were created.
func (a *API) namespaceList(x *httpapi.Exchange) {
	b := appendResult(x.Scratch[:0], resultOK, "")
	b = append(b, '[')
	b = appendNamespace(b, "", registry.DefaultNamespace, globalType)
	b = append(b, '}')
	for _, n := range a.core.Store().Namespaces() {
		b = append(b, ',')
		b = appendNamespace(b, n.ID, n.Name, customType)
		b = append(b, '}')
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}

// namespaceView answers with one namespace and its description.
func (a *API) namespaceView(x *httpapi.Exchange) {
	id, err := x.Params().Bound("namespaceId")
	if err != nil {
		a.fail(x, err)
		return
	}
	if strings.TrimSpace(id) == "" {
		b := appendNamespace(x.Scratch[:0], "", "Public", globalType)
		x.Scratch = append(b, `,"namespaceDesc":"Public Namespace"}`...)
		x.JSON(200, x.Scratch)
		return
	}
	n, ok := a.core.Store().NamespaceByID(id)
	if !ok { // recorded: console-ns-bad, of the ID public too
		a.failAs(x, registry.NamespaceNotFound, 500,
			registry.Refuse(registry.NamespaceNotFound, "namespaceId", id, "namespace %s does not exist", id))
		return
	}
	b := appendNamespace(x.Scratch[:0], n.ID, n.Name, customType)
	b = append(b, `,"namespaceDesc":`...)
	if n.Description == nil {
		b = append(b, "null"...)
	} else {
		b = registry.AppendJSONString(b, *n.Description)
	}
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// namespaceExists answers whether somebody created a namespace of that ID.
func (a *API) namespaceExists(x *httpapi.Exchange) {
	id, err := x.Params().Bound("customNamespaceId")
	if err != nil {
		a.fail(x, err)
		return
	}
	_, ok := a.core.Store().NamespaceByID(id)
	answerBool(x, ok)
}

// createNamespace answers POST /console/namespaces: false when the ID cannot be
// used. An empty one asks for an ID of the server's.
func (a *API) createNamespace(x *httpapi.Exchange) {
	p := x.Params()
	id, err := p.Bound("customNamespaceId")
	if err != nil {
		a.fail(x, err)
		return
	}
	n, err := namespaceOf(p, "namespaceName")
	if err != nil {
		a.fail(x, err)
		return
	}
	if n.ID = strings.TrimSpace(id); n.ID == "" {
		n.ID = newUUID()
	}
	if !validNamespaceID(n.ID) {
		answerBool(x, false)
		return
	}
	err = a.core.CreateNamespace(x.Context(), cause(x, "create namespace"), n)
	if err != nil && !isRefusal(err, registry.NamespaceExists) {
		a.fail(x, err)
		return
	}
	answerBool(x, err == nil)
}

// updateNamespace answers PUT /console/namespaces. An ID that nobody created is
// answered true too, and nothing happens.
func (a *API) updateNamespace(x *httpapi.Exchange) {
	p := x.Params()
	id, err := p.Bound("namespace")
	if err != nil {
		a.fail(x, err)
		return
	}
	n, err := namespaceOf(p, "namespaceShowName")
	if err == nil {
		n.ID = id
		err = a.core.UpdateNamespace(x.Context(), cause(x, "update namespace"), n)
	}
	if err != nil && !isRefusal(err, registry.NamespaceNotFound) {
		a.fail(x, err)
		return
	}
	answerBool(x, true)
}

// deleteNamespace answers DELETE /console/namespaces. What is in it stays, and an
// ID that nobody created is answered true too.
func (a *API) deleteNamespace(x *httpapi.Exchange) {
	id, err := x.Params().Bound("namespaceId")
	if err == nil {
		err = a.core.DeleteNamespace(x.Context(), cause(x, "delete namespace"), id)
	}
	if err != nil && !isRefusal(err, registry.NamespaceNotFound) {
		a.fail(x, err)
		return
	}
	answerBool(x, true)
}

// The longest texts of a namespace, in characters. Source: the columns of Nacos'
// tenant_info, which 1.4.8 exceeds with an error of its database.
const (
	maxNamespaceName = 128
	maxNamespaceDesc = 256
	maxNamespaceID   = 128
)

// namespaceOf reads the name, in the parameter that the call has for it, and the
// description of a namespace.
func namespaceOf(p *httpapi.Params, nameParam string) (registry.Namespace, error) {
	name, err := p.Bound(nameParam)
	if err != nil {
		return registry.Namespace{}, err
	}
	n := registry.Namespace{Name: name}
	if err := checkLabel(nameParam, name, maxNamespaceName); err != nil {
		return n, err
	}
	desc, sent := p.Raw("namespaceDesc")
	if !sent {
		return n, nil
	}
	n.Description = &desc
	return n, checkLabel("namespaceDesc", desc, maxNamespaceDesc)
}

// checkLabel refuses a text for people that is over-long or is none.
func checkLabel(param, text string, most int) error {
	if n := utf8.RuneCountInString(text); n > most {
		return registry.Refuse(registry.InvalidArgument, param, "",
			"Param '%s' is illegal, it has %d characters and may have %d.", param, n, most)
	}
	return httpapi.CheckText(param, text)
}

// validNamespaceID keeps the rule of 1.x: letters, digits, _ and -.
func validNamespaceID(id string) bool {
	if len(id) > maxNamespaceID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails, see its documentation
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// appendNamespace begins a namespace as JSON. A closing brace must follow.
func appendNamespace(b []byte, id, name string, kind int) []byte {
	b = append(b, `{"namespace":`...)
	b = registry.AppendJSONString(b, id)
	b = append(b, `,"namespaceShowName":`...)
	b = registry.AppendJSONString(b, name)
	b = append(b, `,"quota":`...)
	b = strconv.AppendInt(b, namespaceQuota, 10)
	b = append(b, `,"configCount":0,"type":`...)
	return strconv.AppendInt(b, int64(kind), 10)
}

func answerBool(x *httpapi.Exchange, b bool) {
	x.Scratch = strconv.AppendBool(x.Scratch[:0], b)
	x.JSON(200, x.Scratch)
}
