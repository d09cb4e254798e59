// Package internal_test checks the rules of the house in the source, so that the controllers stay alike. The rules are in
// README.md beside it.
package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A function that is longer is hard to read without scrolling back.
const longestFunction = 60

// The files that every controller has, and the only ones in which it reads and writes.
var (
	everyController = []string{"doc.go", "controller.go", "names.go", "status.go"}
	impure          = []string{"controller.go", "pods.go", "jobs.go", "predicates.go"}
)

func TestEveryControllerHasTheSameFiles(t *testing.T) {
	controllers, err := os.ReadDir("controller")
	if err != nil || len(controllers) < 2 {
		t.Fatalf("controllers: %v, %v", controllers, err)
	}
	for _, controller := range controllers {
		for _, name := range everyController {
			if _, err := os.Stat(filepath.Join("controller", controller.Name(), name)); err != nil {
				t.Errorf("%s: every controller has it", err)
			}
		}
	}
}

func TestPureFilesHaveNoClient(t *testing.T) {
	each(t, "controller", func(path string, file *ast.File, _ *token.FileSet) {
		if slices.Contains(impure, filepath.Base(path)) {
			return
		}
		for _, imported := range file.Imports {
			if strings.Contains(imported.Path.Value, "controller-runtime/") {
				t.Errorf("%s imports %s: what reads or writes belongs in controller.go; what decides, in a file that cannot", path, imported.Path.Value)
			}
		}
	})
}

func TestOnlyOwnedAndStatusWrite(t *testing.T) {
	writes := []string{"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf"}
	found := map[string]bool{}
	each(t, ".", func(path string, file *ast.File, _ *token.FileSet) {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(writes, method.Sel.Name) || !isClient(method.X) {
				return true
			}
			found[filepath.Dir(path)] = true
			if dir := filepath.Dir(path); dir != "child" && dir != "status" {
				t.Errorf("%s calls %s of a client: children are written by child, statuses by status", path, method.Sel.Name)
			}
			return true
		})
	})
	if !found["child"] || !found["status"] {
		t.Errorf("writes were found in %v only: the test does not see them any more", found)
	}
}

// isClient tells whether an expression is a client, or the part of one that writes statuses.
func isClient(expression ast.Expr) bool {
	switch x := expression.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == "client" || x.Sel.Name == "Client"
	case *ast.CallExpr:
		method, ok := x.Fun.(*ast.SelectorExpr)
		return ok && (method.Sel.Name == "Status" || method.Sel.Name == "SubResource" || method.Sel.Name == "GetClient")
	}
	return false
}

func TestEveryListGoesThroughAnIndex(t *testing.T) {
	lists := 0
	each(t, "controller", func(path string, file *ast.File, positions *token.FileSet) {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); !ok || method.Sel.Name != "List" || !isClient(method.X) {
				return true
			}
			lists++
			if !slices.ContainsFunc(call.Args, func(argument ast.Expr) bool {
				literal, ok := argument.(*ast.CompositeLit)
				if !ok {
					return false
				}
				name, ok := literal.Type.(*ast.SelectorExpr)
				return ok && name.Sel.Name == "MatchingFields"
			}) {
				t.Errorf("%s: a list without client.MatchingFields looks at every object there is", positions.Position(call.Pos()))
			}
			return true
		})
	})
	if lists < 3 {
		t.Errorf("found %d lists only: the test does not see them any more", lists)
	}
}

func TestHelpersKnowNoKind(t *testing.T) {
	for _, helper := range []string{"child", "diff", "recent", "slim", "status", "names", "operand"} {
		each(t, helper, func(path string, file *ast.File, _ *token.FileSet) {
			for _, imported := range file.Imports {
				if strings.Contains(imported.Path.Value, "memcached-operator/api/") || strings.Contains(imported.Path.Value, "internal/controller") {
					t.Errorf("%s imports %s: helpers are called and know no kind", path, imported.Path.Value)
				}
			}
		})
	}
}

func TestFunctionsAreShort(t *testing.T) {
	for _, root := range []string{".", "../cmd", "../api"} {
		each(t, root, func(path string, file *ast.File, positions *token.FileSet) {
			for _, declaration := range file.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if !ok || strings.HasPrefix(filepath.Base(path), "zz_generated") {
					continue
				}
				if length := positions.Position(function.End()).Line - positions.Position(function.Pos()).Line + 1; length > longestFunction {
					t.Errorf("%s: %s has %d lines; %d are enough", path, function.Name.Name, length, longestFunction)
				}
			}
		})
	}
}

// each visits every Go file below a directory that is not a test.
func each(t *testing.T, root string, visit func(path string, file *ast.File, positions *token.FileSet)) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err == nil {
			seen++
			visit(path, file, positions)
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Fatalf("reading %s: %d files, %v", root, seen, err)
	}
}
