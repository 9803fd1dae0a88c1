package httpapi

import (
	"net"
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/internal/admission"
)

// Limit sets how many connections may be served from now on, in all and of one
// address; 0 is no limit. Those that are there stay.
func (s *Server) Limit(inAll, ofAddress int) { s.admission.Limit(inAll, ofAddress) }

// Connections returns how many connections are open.
func (s *Server) Connections() int { return s.admission.Connections() }

// Refused returns how many connections were refused by the limit of all connections
// and by that of one address.
func (s *Server) Refused() (inAll, ofAddress uint64) { return s.admission.Refused() }

// refuse tells a client in plain HTTP why it is not served, and closes its
// connection.
func (s *Server) refuse(nc net.Conn, r *admission.Refusal) {
	defer func() { _ = nc.Close() }()
	if !s.admission.StartRefusing() {
		return
	}
	defer s.admission.StopRefusing()

	status, text := "503 Service Unavailable", r.Error()
	if r.OfAddress {
		status = "429 Too Many Requests"
	}
	if nc.SetDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, err := nc.Write([]byte("HTTP/1.1 " + status + "\r\nContent-Type: " + typeText +
		"\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" + text))
	if err == nil {
		linger(nc)
	}
}
