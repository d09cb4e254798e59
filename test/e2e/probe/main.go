// Command probe asks operands and operators questions from inside of the cluster, as their clients do. It runs in a pod of
// the end-to-end tests, prints what it was told, and ends with 1 if the answer is not what it should be.
//
//	probe memcached SERVICE    finds the nodes by the SRV records of SERVICE and has each keep a value: one line for each node
//	probe http URL...          the first line of the answer's status, for each
//	probe metrics URL [TOKEN]  the status and the number of metrics, with the token in the file TOKEN if it is named
package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const timeout = 10 * time.Second

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "memcached":
		err = memcached(args[1])
	case len(args) > 1 && args[0] == "http":
		err = get(args[1:])
	case len(args) > 1 && args[0] == "metrics":
		err = metrics(args[1], args[2:])
	default:
		err = errors.New("usage: probe memcached SERVICE | http URL... | metrics URL [TOKEN]")
	}
	if err != nil {
		fmt.Println("probe:", err)
		os.Exit(1)
	}
}

// memcached finds all nodes, and sets, gets and deletes a value at each. Nodes share nothing, so what one was told, the
// others must not know.
func memcached(service string) error {
	_, records, err := net.LookupSRV("memcached", "tcp", service)
	if err != nil {
		return err
	}
	for _, record := range records {
		address := fmt.Sprintf("%s:%d", record.Target, record.Port)
		version, err := keepValue(address)
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		fmt.Println(address, version)
	}
	return nil
}

// keepValue speaks memcached's text protocol, as doc/protocol.txt in its source has it.
func keepValue(address string) (version string, err error) {
	connection, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(connection)
	next := func() (string, error) {
		if !lines.Scan() {
			return "", cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
		}
		return lines.Text(), nil
	}
	value := address
	for _, exchange := range []struct {
		request string
		answer  []string
	}{
		{"get probe", []string{"END"}},
		{fmt.Sprintf("set probe 0 60 %d\r\n%s", len(value), value), []string{"STORED"}},
		{"get probe", []string{fmt.Sprintf("VALUE probe 0 %d", len(value)), value, "END"}},
		{"delete probe", []string{"DELETED"}},
	} {
		if _, err := fmt.Fprintf(connection, "%s\r\n", exchange.request); err != nil {
			return "", err
		}
		for _, want := range exchange.answer {
			answer, err := next()
			if err != nil {
				return "", fmt.Errorf("%q is not answered: %w", exchange.request, err)
			}
			if answer != want {
				return "", fmt.Errorf("%q is answered by %q, not by %q", exchange.request, answer, want)
			}
		}
	}
	if _, err := fmt.Fprint(connection, "version\r\n"); err != nil {
		return "", err
	}
	answer, err := next()
	if err != nil {
		return "", fmt.Errorf("version is not answered: %w", err)
	}
	version, ok := strings.CutPrefix(answer, "VERSION ")
	if !ok {
		return "", fmt.Errorf("version is answered by %q", answer)
	}
	return version, nil
}

func get(urls []string) error {
	client := http.Client{Timeout: timeout}
	for _, url := range urls {
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		fmt.Println(url, response.Status)
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
	}
	return nil
}

func metrics(url string, token []string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if len(token) > 0 {
		content, err := os.ReadFile(token[0])
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+string(content))
	}
	client := http.Client{Timeout: timeout, Transport: &http.Transport{
		// The manager signs its certificate itself unless it is given one.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, strings.Count(string(body), "\n# TYPE "))
	return err
}
