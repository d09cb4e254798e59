package memcached

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// The target bench-memory of the Makefile sets this. The results are in docs/memcached-sizing.md.
var memcachedCommand = flag.String("memcached", "",
	"the command that runs memcached, to measure its memory (needs root)")

// TestMemoryHolds fills memcached until it evicts, keeps all connections busy, and compares the memory that its control
// group has used at most with the limit that the operator sets, which the control group enforces.
func TestMemoryHolds(t *testing.T) {
	if *memcachedCommand == "" {
		t.Skip("make bench-memory runs it")
	}
	var files syscall.Rlimit // memcached inherits it; it needs one for each connection
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	files.Cur = files.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	fmt.Println("| memory | threads | busy connections | RSS, MiB | peak, MiB | limit, MiB | limit / peak | evictions | " +
		"OOM kills |\n|---|---|---|---|---|---|---|---|---|")
	for _, memory := range []string{"64Mi", "256Mi", "1Gi"} {
		for _, threads := range []int32{1, 4} {
			for _, connections := range []int{100, 4000} {
				measureMemory(t, memory, threads, connections)
			}
		}
	}
}

func measureMemory(t *testing.T, memory string, threads int32, connections int) {
	quantity := resource.MustParse(memory)
	config := &cachev1alpha1.MemcachedConfig{Memory: &quantity, Threads: threads}
	if connections > 1000 {
		config.MaxConnections = int32(connections + 100)
	}
	s := settingsOf(&cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Config: config}})
	limit := s.resources.Limits[corev1.ResourceMemory]
	node := startNode(t, command(s)[1:], limit.Value())
	defer node.stop()
	node.fill(2 * s.memory)
	node.keepBusy(connections)

	stats := node.stats()
	peak, kills := node.peak()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", node.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var rss float64
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &rss); err == nil {
			break
		}
	}
	allowed := float64(limit.Value()) / float64(mebibyte)
	fmt.Printf("| %s | %d | %d | %.0f | %.0f | %.0f | %.2f | %s | %d |\n", memory, threads, connections, rss/1024, peak,
		allowed, allowed/peak, stats["evictions"], kills)
	if kills > 0 || stats["evictions"] == "0" || memory == "1Gi" && allowed/peak > 1.5 {
		t.Errorf("%s, %d threads, %d connections: killed %d times, %s evictions, limit %.2f times the peak", memory, threads,
			connections, kills, stats["evictions"], allowed/peak)
	}
}

// node is a running memcached in a control group of its own.
type node struct {
	t       *testing.T
	group   string
	process *exec.Cmd
	address string
}

func startNode(t *testing.T, args []string, limit int64) *node {
	n := &node{t: t, group: filepath.Join("/sys/fs/cgroup", fmt.Sprintf("memcached-memory-%d", time.Now().UnixNano()))}
	limits := map[string]int64{"memory.max": limit, "memory.swap.max": 0}
	if isVersion1 {
		n.group = strings.Replace(n.group, "cgroup/", "cgroup/memory/", 1)
		limits = map[string]int64{"memory.limit_in_bytes": limit, "memory.swappiness": 0,
			"memory.kmem.tcp.limit_in_bytes": limit} // without a limit, they are not counted
	}
	n.must(os.Mkdir(n.group, 0o755))
	for file, value := range limits {
		n.must(os.WriteFile(filepath.Join(n.group, file), []byte(strconv.FormatInt(value, 10)), 0o600))
	}

	free, err := net.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	n.address = free.Addr().String()
	n.must(free.Close())
	_, port, _ := net.SplitHostPort(n.address)
	n.process = exec.Command("sh", "-c", fmt.Sprintf("echo $$ > %s/cgroup.procs && exec %s %s --listen=127.0.0.1 "+
		"--port=%s --user=nobody", n.group, *memcachedCommand, strings.Join(args, " "), port))
	n.must(n.process.Start())
	for range 100 {
		if c, err := net.Dial("tcp", n.address); err == nil {
			_ = c.Close()
			return n
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("memcached does not listen")
	return nil
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) stop() {
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
	_ = os.Remove(n.group)
}

// isVersion1 is set where Linux does not count memory in control groups of version 2.
var isVersion1 = func() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err != nil
}()

// peak returns the most memory in MiB that the control group has used, with the buffers of sockets, and how often a
// process was killed for it. Version 1 counts these buffers apart, so their peaks are added.
func (n *node) peak() (mib float64, kills int64) {
	if isVersion1 {
		bytes := n.read("memory.max_usage_in_bytes") + n.read("memory.kmem.tcp.max_usage_in_bytes")
		return float64(bytes) / float64(mebibyte), n.read("memory.oom_control", "oom_kill")
	}
	return float64(n.read("memory.peak")) / float64(mebibyte), n.read("memory.events", "oom_kill")
}

// read returns a number from a file of the control group, or the value of a key in it.
func (n *node) read(file string, key ...string) int64 {
	content, err := os.ReadFile(filepath.Join(n.group, file))
	n.must(err)
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(key) == 0 || fields[0] == key[0] {
			value, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
			n.must(err)
			return value
		}
	}
	n.t.Fatalf("%s has no %v", file, key)
	return 0
}

func (n *node) dial() (net.Conn, *bufio.Reader) {
	connection, err := net.Dial("tcp", n.address)
	n.must(err)
	return connection, bufio.NewReader(connection)
}

func (n *node) stats() map[string]string {
	c, answers := n.dial()
	defer func() { _ = c.Close() }()
	_, err := io.WriteString(c, "stats\r\n")
	n.must(err)
	stats := map[string]string{}
	for {
		line, err := answers.ReadString('\n')
		n.must(err)
		fields := strings.Fields(line)
		if fields[0] == "END" {
			return stats
		}
		stats[fields[1]] = fields[2]
	}
}

// itemSizes are the sizes of the items, in several slab classes; each takes the same share of the bytes.
var itemSizes = []int{100, 500, 2000, 10_000, 50_000, 200_000, 500_000}

// fill sets items until the given number of bytes was written.
func (n *node) fill(size int64) {
	c, answers := n.dial()
	defer func() { _ = c.Close() }()
	value := bytes.Repeat([]byte("x"), 500_000)
	buffered := bufio.NewWriterSize(c, 1<<20)
	for written, round := int64(0), 0; written < size; round++ {
		for _, length := range itemSizes {
			count := 500_000 / length
			for i := range count {
				_, err := fmt.Fprintf(buffered, "set k%d.%d.%d 0 0 %d\r\n%s\r\n", length, round, i, length, value[:length])
				n.must(err)
			}
			n.must(buffered.Flush())
			for range count { // "STORED", or "SERVER_ERROR" for a class that has no page yet
				_, err := answers.ReadString('\n')
				n.must(err)
			}
			written += int64(count * length)
		}
	}
}

// keepBusy opens connections that all set and get items at the same time. In the end, each is in the middle of a
// request: half of them have sent half of an item, and the others have not read the answer to a request for 32 items.
func (n *node) keepBusy(connections int) {
	var clients sync.WaitGroup
	all := make([]net.Conn, connections)
	for i := range all {
		c, answers := n.dial()
		all[i] = c
		clients.Go(func() {
			value := strings.Repeat("y", 4000)
			for round := range 20 {
				_, _ = fmt.Fprintf(c, "set b%d.%d 0 0 %d\r\n%s\r\nget b%d.%d\r\n", i, round, len(value), value, i, round)
				for line := ""; !strings.HasPrefix(line, "END"); {
					var err error
					if line, err = answers.ReadString('\n'); err != nil {
						return
					}
				}
			}
			if i%2 == 0 {
				_, _ = fmt.Fprintf(c, "set b%d 0 0 %d\r\n%s", i, 2*len(value), value)
			} else {
				_, _ = fmt.Fprintf(c, "get%s\r\n", strings.Repeat(fmt.Sprintf(" b%d.19", i), 32))
			}
		})
	}
	clients.Wait()
	time.Sleep(2 * time.Second)
	for _, c := range all {
		_ = c.Close()
	}
}
