package e2e

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// The pages are read in the order in which a newcomer follows them.
var _ = Describe("The commands in the documents", func() {
	It("work as they are printed, with the output that is printed", SpecTimeout(3*stepTimeout), func(ctx SpecContext) {
		before, err := inventory(ctx)
		Expect(err).NotTo(HaveOccurred())
		cleanUp(deleteOLMLeftovers)
		cleanUp(deleteDefinitions)
		cleanUp(func(ctx context.Context) {
			kubectl(ctx, "delete", "namespace", operatorNamespace, "--ignore-not-found")
		})
		checkout := localCheckout()
		for _, page := range []string{"README.md", "docs/memcached.md", "docs/foo.md", "docs/cronjob.md", "docs/uninstall.md",
			"docs/install.md", "docs/uninstall.md"} {
			follow(ctx, checkout, page)
		}
		awaitNothingBut(ctx, before)
	})
})

// block is a block of commands in a document.
type block struct {
	commands string
	output   string // that the document shows below the commands; empty if none
	isRun    bool   // false if a comment above the block says "not run" and why
}

// blocksOf returns the blocks of shell commands in a document.
func blocksOf(page string) []block {
	GinkgoHelper()
	file, err := os.Open(filepath.Join(root, page))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	var blocks []block
	language, content, isRun := "", "", true
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		switch {
		case language != "" && line == "```":
			if language == "sh" {
				blocks = append(blocks, block{commands: content, isRun: isRun})
			} else if language == "text" && len(blocks) > 0 {
				blocks[len(blocks)-1].output = content
			}
			language, content, isRun = "", "", true
		case language != "":
			content += line + "\n"
		case strings.HasPrefix(line, "```"):
			language = strings.TrimPrefix(line, "```")
		case strings.HasPrefix(line, "<!-- not run: "):
			isRun = false
		}
	}
	Expect(language).To(BeEmpty(), "%s: a block does not end", page)
	return blocks
}

// follow runs the commands of a page. Lines of output that the page shows must appear in their order; others may appear
// between them.
func follow(ctx context.Context, checkout, page string) {
	GinkgoHelper()
	path := "PATH=" + filepath.Dir(os.Getenv("KUBECTL")) + ":" + os.Getenv("PATH")
	count := 0
	for _, block := range blocksOf(page) {
		if !block.isRun {
			continue
		}
		count++
		out := run(ctx, "env", "-C", checkout, path, "sh", "-ec", block.commands)
		shown := strings.Split(strings.TrimSpace(regexp.QuoteMeta(block.output)), "\n")
		Expect(out).To(MatchRegexp("(?s)"+strings.Join(shown, ".*\n")), "%s shows another output", page)
	}
	Expect(count).To(BeNumerically(">", 0), "%s has no commands that can run", page)
}

// localCheckout returns a copy of config whose images are those of this cluster's registry: the documents name images
// on registries that a test cluster need not reach.
func localCheckout() string {
	GinkgoHelper()
	checkout := GinkgoT().TempDir()
	Expect(os.CopyFS(filepath.Join(checkout, "config"), os.DirFS(filepath.Join(root, "config")))).To(Succeed())
	install := filepath.Join(checkout, "config/catalog/install.yaml")
	replace(install, `(?m)^  image: .*$`, "  image: "+image("-catalog", "tree"))
	replace(install, `(?m)^  channel: .*$`, "  channel: candidate")
	settings, err := yaml.Marshal(operatorsv1alpha1.SubscriptionConfig{Env: operandImages()})
	Expect(err).NotTo(HaveOccurred())
	indented := strings.ReplaceAll("\n"+strings.TrimSpace(string(settings)), "\n", "\n    ")
	replace(install, `(?m)^  installPlanApproval: .*$`, "  config:"+indented)
	if os.Getenv("TEST_CLUSTER") != "dedicated" { // it has a mirror
		replace(filepath.Join(checkout, "config/samples/batch_v1_cronjob.yaml"), `image: .*`, "image: "+agentImage())
	}
	return checkout
}

// replace replaces what matches in a file, which must be there.
func replace(path, pattern, text string) {
	GinkgoHelper()
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(content)).To(MatchRegexp(pattern), path)
	Expect(os.WriteFile(path, regexp.MustCompile(pattern).ReplaceAll(content, []byte(text)), 0o600)).To(Succeed())
}
