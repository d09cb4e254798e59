// Package internal_test checks the architecture rules of README.md that no linter can check.
package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestControllersHaveTheSameFiles(t *testing.T) {
	controllers, err := os.ReadDir("controller")
	if err != nil || len(controllers) < 2 {
		t.Fatalf("controllers: %v, %v", controllers, err)
	}
	for _, controller := range controllers {
		for _, name := range []string{"doc.go", "controller.go", "names.go", "status.go"} {
			if _, err := os.Stat(filepath.Join("controller", controller.Name(), name)); err != nil {
				t.Errorf("every controller needs this file: %v", err)
			}
		}
	}
}

// A list without an index reads every object in the cache, or in the cluster.
func TestListsInControllersUseAnIndex(t *testing.T) {
	paths, err := filepath.Glob("controller/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(file) {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 || selected(call.Fun) != "List" {
				continue
			}
			lists++
			if !slices.ContainsFunc(call.Args, isMatchingFields) {
				t.Errorf("%s: List needs client.MatchingFields", positions.Position(call.Pos()))
			}
		}
	}
	if lists < 4 {
		t.Errorf("found %d calls of List, want at least 4: this test no longer recognizes them", lists)
	}
}

func isMatchingFields(expression ast.Expr) bool {
	literal, ok := expression.(*ast.CompositeLit)
	return ok && selected(literal.Type) == "MatchingFields"
}

// selected returns the name after the dot of an expression, if it has one.
func selected(expression ast.Expr) string {
	if selector, ok := expression.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return ""
}
