package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-registry/rollcall/internal/bench/process"
)

// beatRequest is a full beat as nacos-client 1.4 sends it.
const beatRequest = "PUT /nacos/v1/ns/instance/beat?app=unknown&serviceName=DEFAULT_GROUP%40%40orders&namespaceId=public" +
	"&port=8080&clusterName=DEFAULT&ip=10.0.0.7&beat=%7B%22cluster%22%3A%22DEFAULT%22%2C%22ip%22%3A%2210.0.0.7%22%2C%22metadata%22" +
	"%3A%7B%7D%2C%22period%22%3A5000%2C%22port%22%3A8080%2C%22scheduled%22%3Afalse%2C%22serviceName%22%3A%22DEFAULT_GROUP%40%40orders" +
	"%22%2C%22stopped%22%3Afalse%2C%22weight%22%3A1.0%7D HTTP/1.1\r\n" +
	"Content-Type: application/x-www-form-urlencoded\r\n" +
	"Accept-Charset: UTF-8\r\n" +
	"Accept-Encoding: gzip,deflate,sdch\r\n" +
	"Content-Encoding: UTF-8\r\n" +
	"Client-Version: 1.4.8\r\n" +
	"User-Agent: Nacos-Java-Client:v1.4.8\r\n" +
	"RequestId: 0f7cbbd9-3f5e-4e5e-9a3e-0c1d2b3a4f5e\r\n" +
	"Request-Module: Naming\r\n" +
	"Host: 127.0.0.1:8848\r\n" +
	"Connection: Keep-Alive\r\n" +
	"Content-Length: 0\r\n\r\n"

// load sends beats over o.conns connections, one at a time on each, and prints
// the requests answered and the nanoseconds it took.
func load(o options) error {
	var (
		answered atomic.Int64
		wait     sync.WaitGroup
		failures = make(chan error, o.conns)
		start    = time.Now()
		end      = start.Add(o.length)
	)
	for range o.conns {
		wait.Go(func() {
			n, err := beatUntil(o.address, end)
			answered.Add(n)
			if err != nil {
				failures <- err
			}
		})
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	fmt.Println(answered.Load(), time.Since(start).Nanoseconds())
	return nil
}

// beatUntil sends beats over one connection and returns how many were answered.
func beatUntil(address string, end time.Time) (answered int64, err error) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = nc.Close() }()
	request, answer := []byte(beatRequest), make([]byte, 4096)
	for answered&0xff != 0 || time.Now().Before(end) {
		if _, err := nc.Write(request); err != nil {
			return answered, err
		}
		if err := readAnswer(nc, answer); err != nil {
			return answered, err
		}
		answered++
	}
	return answered, nil
}

// readAnswer reads one answer, which must be a 200 that fits in buf and end with
// the body that every stack sends.
func readAnswer(r io.Reader, buf []byte) error {
	for n := 0; n < len(buf); {
		m, err := r.Read(buf[n:])
		if err != nil {
			return err
		}
		n += m
		if bytes.HasSuffix(buf[:n], beatAnswer) {
			if !bytes.HasPrefix(buf, []byte("HTTP/1.1 200")) {
				return fmt.Errorf("answer %q", buf[:n])
			}
			return nil
		}
	}
	return errors.New("the answer is too large")
}

// idle opens connections, sends one request on each, and prints by how many bytes
// each made the server's resident memory grow.
func idle(o options) error {
	before, err := process.Read(o.pid)
	if err != nil {
		return err
	}
	answer := make([]byte, 4096)
	for range o.idle {
		nc, err := net.Dial("tcp", o.address)
		if err != nil {
			return err
		}
		defer func() { _ = nc.Close() }()
		if _, err := nc.Write([]byte(beatRequest)); err != nil {
			return err
		}
		if err := readAnswer(nc, answer); err != nil {
			return err
		}
	}
	after, err := process.Read(o.pid)
	if err != nil {
		return err
	}
	fmt.Println((after.Resident - before.Resident) / int64(max(o.idle, 1)))
	return nil
}
