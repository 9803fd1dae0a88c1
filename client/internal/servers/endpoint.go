package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxEndpoint bounds the answer of an endpoint.
const maxEndpoint = 1 << 20

// Endpoint returns a source that asks an address server: a GET of the URL is answered
// with a server a line, as by /nacos/serverlist of Nacos and Rollcall. A URL without a
// path gets that one. Empty lines and comments, which begin with #, are passed over.
func Endpoint(client *http.Client, address string) (Source, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q is no URL of http or https", address)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/nacos/serverlist"
	}
	return func(ctx context.Context) ([]string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("endpoint answered %d", response.StatusCode)
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, maxEndpoint+1))
		if err != nil {
			return nil, err
		}
		if len(body) > maxEndpoint {
			return nil, errors.New("the answer of the endpoint is too long")
		}
		return lines(string(body)), nil
	}, nil
}

func lines(text string) []string {
	var entries []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			entries = append(entries, line)
		}
	}
	return entries
}
