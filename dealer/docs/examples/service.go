// A service in Go: a table, tickets for two users, every event in a file.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

func ask(verb, path, body string) *json.Decoder {
	request, _ := http.NewRequest(verb, os.Getenv("HOUSE")+path, strings.NewReader(body))
	request.Header = http.Header{"Authorization": {"Bearer " + os.Getenv("KEY")}, "Content-Type": {"application/json"}}
	if answer, err := http.DefaultClient.Do(request); err == nil {
		return json.NewDecoder(answer.Body)
	}
	return json.NewDecoder(http.NoBody) // the server is away
}

func main() {
	type result struct{ Table, Ticket, Message string }
	var opened, made struct{ Result, Error result }
	rpc := `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`
	ask("POST", "/rpc", fmt.Sprintf(rpc, "table.open", `"ref":"match-17","rules":{"seats":2,"join":"invite"}`)).Decode(&opened)
	for _, name := range []string{"Ada", "Bob"} {
		user := fmt.Sprintf(`"table":%q,"name":%q,"subject":%[2]q`, opened.Result.Table, name)
		ask("POST", "/rpc", fmt.Sprintf(rpc, "seat.ticket", user)).Decode(&made)
		path := "/tables/" + opened.Result.Table + "#ticket=" + made.Result.Ticket
		fmt.Println(name+":", os.Getenv("HOUSE")+path, made.Error.Message)
	}
	file, _ := os.OpenFile("events.jsonl", os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	stored, last := json.NewDecoder(file), struct{ Position string }{"start"}
	for stored.Decode(&last) == nil {
	}
	file.Truncate(stored.InputOffset()) // without half a line
	for ; ; time.Sleep(time.Second) {
		feed := ask("GET", "/feed?after="+last.Position, "")
		for text := (json.RawMessage{}); feed.Decode(&text) == nil; json.Unmarshal(text, &last) {
			fmt.Fprintf(file, "\n%s", text)
		}
	}
}
