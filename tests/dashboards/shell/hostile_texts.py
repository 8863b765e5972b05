"""Texts that try to be more than text."""

from __future__ import annotations

TEXTS = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
    "![x](http://127.0.0.1:1/leak.png) [a](javascript:alert(1)) <http://127.0.0.1:1/auto>",
    "http://127.0.0.1:1/bare www.example.org/bare HTTPS://EXAMPLE.ORG a@example.org mailto:b@example.org",
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \u202eabc\u202c \u2066x\u2069 \u200bzero",
    "$x^2$ $$y$$ \\(z\\) :skull: :red[red] :material/skull: :material_home: :blue-background[b] :streamlit:",
    "a -> b <- c <-> d -- e >= f <= g ~= h",
    "**bold** _em_ ~~gone~~ `code` # head\n- list\n> quote\n| a | b |\n|---|---|\n1. one",
    "&lt;b&gt; &#x3c;script&#x3e; \\<i> <b>x</b>",
)
LINE = "A" * 1024 * 1024
