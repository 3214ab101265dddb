package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// line is a connection of HTTP/1.1 for one request at a time. http.Client has two
// goroutines for each connection, which take as long as the server does for a small
// request; on one machine with the server that would be measured too.
type line struct {
	addr, path, header string
	conn               net.Conn
	in                 *bufio.Reader
	out                []byte // the request's head and body, which one write sends
}

// send returns the status of the answer, or net for an answer that did not come.
func (c *line) send(body []byte) string {
	status, err := c.try(body)
	if err != nil {
		c.close()
		return "net"
	}
	return status
}

func (c *line) try(body []byte) (string, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, time.Minute)
		if err != nil {
			return "", err
		}
		c.conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	c.out = fmt.Appendf(c.out[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", c.path, c.addr, len(body))
	if c.header != "" {
		c.out = fmt.Appendf(c.out, "Inference-Header-Content-Length: %s\r\n", c.header)
	}
	c.out = append(append(c.out, "\r\n"...), body...)
	if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", err
	}
	_, sent := c.conn.Write(c.out) // a server that refuses may answer before it has read all
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", errors.Join(sent, err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return "", err
	}
	if r.Close || sent != nil {
		c.close()
	}
	return strconv.Itoa(r.StatusCode), nil
}

// close ends the connection; the next request makes another.
func (c *line) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
