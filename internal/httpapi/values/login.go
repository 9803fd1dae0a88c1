package values

import (
	"encoding/base64"
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// tokenTTL is how long clients are told that a token is good. Source: Nacos
// AuthConfigs, token.expire.seconds.
const tokenTTL = 18000 * time.Second

// Login answers a login while authentication is off, where any user and password
// will do: fleets bring the passwords of their old server. The token is never
// looked at; clients only need one, and some gateways drop every instance when
// they have none. nowMillis is the time since the epoch.
func Login(x *httpapi.Exchange, username string, nowMillis int64) {
	token := openToken(username, time.UnixMilli(nowMillis).Add(tokenTTL))
	x.SetHeader("Authorization", "Bearer "+token)
	b := append(x.Scratch[:0], `{"accessToken":"`...)
	b = append(b, token...)
	b = append(b, `","tokenTtl":`...)
	b = strconv.AppendInt(b, int64(tokenTTL/time.Second), 10)
	b = append(b, `,"globalAdmin":true,"username":`...)
	b = registry.AppendJSONString(b, username)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// openToken returns an unsecured JWT (RFC 7519, 6): consoles read the claims, and
// nothing takes it for a proof.
func openToken(username string, expires time.Time) string {
	claims := registry.AppendJSONString([]byte(`{"sub":`), username)
	claims = append(claims, `,"exp":`...)
	claims = strconv.AppendInt(claims, expires.Unix(), 10)
	claims = append(claims, '}')
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "."
}
