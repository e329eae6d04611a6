"""Chat templates in the shapes of published ones, and small templates that test one construct each."""

CHATML = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

SMOLLM = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful assistant.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

LLAMA3 = """{% set loop_messages = messages %}{% for message in loop_messages %}\
{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + \
'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""

LLAMA31 = r"""{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\n\n"}}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {%- for arg_name, arg_val in tool_call.arguments | items %}
            {{- arg_name + '="' + arg_val + '"' }}
        {%- endfor %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

QWEN25 = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- tool_call.arguments | tojson }}
        {%- endfor %}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- message.content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

QWEN3 = r"""{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""

MISTRAL = """{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}\
{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}\
{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}\
{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"""

MISTRAL3 = r"""{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST]" + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST]" + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}\
{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}\
{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}\
{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"""

PHI3 = r"""{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}"""

LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}\
{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}\
{% set system_message = false %}{% endif %}{% for message in loop_messages %}\
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}\
{% if loop.index0 == 0 and system_message != false %}\
{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}\
{% else %}{% set content = message['content'] %}{% endif %}\
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}\
{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

DEEPSEEK = r"""{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<|User|>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is not none %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<|Assistant|>' + content + eos_token}}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{'<|Assistant|><think>\n'}}{% endif %}"""

FAMILIES = {
    "chatml": CHATML, "smollm": SMOLLM, "llama2": LLAMA2, "llama3": LLAMA3, "llama31": LLAMA31, "qwen25": QWEN25,
    "qwen3": QWEN3, "mistral": MISTRAL, "mistral3": MISTRAL3, "zephyr": ZEPHYR, "gemma": GEMMA, "phi3": PHI3,
    "deepseek": DEEPSEEK,
}


def message(role, content):
    return {"role": role, "content": content}


CONVERSATIONS = [
    [message("user", "Hi there")],
    [message("system", "  Be brief.\n"), message("user", "What is 1 + 1?")],
    [message("user", "a"), message("assistant", " b "), message("user", "c\n")],
    [message("system", "S"), message("user", "naïve 🙂 «x»"), message("assistant", "<think>\nhm\n</think>\n\nok"),
     message("user", "{{ x }} {% y %}"), message("assistant", "'\"\\n"), message("user", "")],
    [message("user", "one"), message("user", "two")],
    [message("assistant", "first"), message("tool", "42")],
]

# One construct each; rendered with the fourth conversation.
SNIPPETS = [
    "plain text", "", "\n", "a\n", "a\n\n", "a\r\nb\rc\r\n",
    "{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 - 3 - 4 }}",
    "{{ 'a' ~ 1 ~ none ~ true ~ nothing }}", "{{ 'a' 'b' \"c\" }}", "{{ true }} {{ False }} {{ none }} {{ None }}",
    r"{{ 'tab\tnew\nquote\'back\\slash\x41\u00e9\U0001F642\q' }}", r'{{ "double \" quote" }}',
    "{{ undefined_name }}|{{ undefined_name is defined }}|{{ undefined_name | default('x') }}",
    "{{ messages | length }} {{ messages[0].role }} {{ messages[-1]['role'] }} {{ messages[99] is defined }}",
    "{{ messages[1:3] | length }}{{ messages[:-1] | length }}{{ messages[::2] | length }}{{ messages[::-1][0].role }}",
    "{{ 'hello'[1] }}{{ 'hello'[-1] }}{{ 'hello'[1:3] }}{{ 'hello'[::-1] }}{{ 'naïve'[2:] }}{{ 'abc'[5:] }}",
    "{{ messages[3:1] | length }}{{ messages[-100:2] | length }}{{ messages[5:0:-2] | length }}",
    "{% for m in messages %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }};{% endfor %}",
    "{% for m in messages %}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem is defined }}{{ loop.nextitem.role }} {% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content | length }},{% else %}none{% endfor %}",
    "{% for m in [] %}x{% else %}empty{% endfor %}", "{% for c in 'añb' %}[{{ c }}]{% endfor %}",
    "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}{{ m.role }} {% endfor %}",
    "{% for m in messages %}{% if m.role == 'user' %}{% continue %}{% endif %}{{ m.role }} {% endfor %}",
    "{% for i in range(3) %}{% for j in range(1, 3) %}{{ i }}{{ j }} {% endfor %}{% endfor %}{{ loop is defined }}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}", "{% for p in [[1, 2], [3, 4]] %}{{ p[0] + p[1] }} {% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }} {% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(a=1, b='x') %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{% set t %}a{{ 1 }}b{% endset %}[{{ t }}]", "{% set x = 'a' if false %}[{{ x }}]",
    "{{ 'y' if 1 == 1 else 'n' }}{{ 'y' if 1 == 2 else 'm' if 2 == 2 else 'n' }}",
    "{{ 1 < 2 }}{{ 2 <= 2 }}{{ 'a' < 'b' }}{{ 'é' > 'z' }}{{ 3 > 4 }}{{ 1 == true }}{{ '1' == 1 }}{{ 1 != 2 }}",
    "{{ 'a' in 'cat' }}{{ 'x' not in 'cat' }}{{ 1 in [1, 2] }}{{ 'role' in messages[0] }}{{ 'q' in {'q': 1} }}",
    "{{ not true }}{{ not false and true }}{{ true or x.y }}{{ false and x.y }}{{ '' or 'd' }}{{ 'a' and 'b' }}",
    "{{ not 1 == 2 }}{{ not 'a' in 'b' }}{{ 1 + 1 == 2 and 2 * 2 == 4 }}",
    "{{ '  x '|trim }}|{{ ' x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abc'.lstrip('ab') }}|{{ 'abc'.rstrip('bc') }}|{{ ' \u00a0x\u2003 ' | trim }}|",
    "{{ 'aXb' | upper }}{{ 'aXb' | lower }}{{ 'ÉßЖ' | lower }}{{ 'éж' | upper }}{{ 'hELLO wORLD' | capitalize }}{{ 'hELLO wORLD' | title }}",
    "{{ 'a,b,,c'.split(',') | length }}{{ 'a,b,c'.split(',')[1] }}{{ ' a  b '.split() | join('-') }}{{ 'a,b,c'.split(',', 1)[1] }}",
    "{{ 'hello'.startswith('he') }}{{ 'hello'.endswith('lo') }}{{ 'hello'.startswith('x') }}",
    "{{ 'aaa'.replace('a', 'b') }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aba' | replace('a', 'cc') }}",
    "{{ [1, 2, 3] | join(', ') }}{{ ['a', 'b'] | join }}{{ ', '.join(['x', 'y']) }}{{ messages | map(attribute='role') | join(' ') }}",
    "{{ [3, 1] | first }}{{ [3, 1] | last }}{{ [1, 2] | reverse | list | join }}{{ ([1] + [2]) | length }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | rejectattr('role', 'eq', 'user') | list | length }}",
    "{{ ['a', '', 'b'] | select | join('+') }}{{ [1, 2, 1] | reject('equalto', 1) | join }}",
    r"""{{ 'q"\n\t\\\x01é</script>' | tojson }}{{ 1 | tojson }}{{ none | tojson }}{{ true | tojson }}{{ [1, 'a', {'b': none}] | tojson }}""",
    "{{ 'x' is string }}{{ 1 is string }}{{ 1 is number }}{{ true is boolean }}{{ none is none }}{{ nothing is none }}{{ 1 is integer }}",
    "{{ messages is iterable }}{{ messages[0] is mapping }}{{ 'a' is sequence }}{{ 3 is odd }}{{ 3 is even }}{{ true is true }}{{ 1 is true }}",
    "{{ 1 is not none }}{{ x is not defined }}{{ 1 is eq 1 }}{{ 'a' is in ['a'] }}{{ 1 is equalto(1) and true }}",
    "{{ '' | default('d') }}{{ '' | default('d', true) }}{{ none | default('d') }}{{ x.y | default('d') if false else 'e' }}",
    "{{ '5' | int + 1 }}{{ 5 | string + '1' }}{{ messages[0].get('role') }}{{ messages[0].get('x', 'dd') }}{{ messages[0].keys() | join(',') }}",
    "{{ {'a': {'b': [1, 2]}}.a.b[1] }}{{ {'a': 1}['a'] }}{{ [[1], [2, 3]][1][0] }}",
    "{{- 'a' -}}  b  {{- 'c' }}  d", "a  {%- if true -%}  b  {%- endif -%}  c", "x {#- note -#} y", "x {# note #}\ny",
    "  {% if true %}\n  a\n  {% endif %}\n  b", "a {% if true %}\nb\n{% endif %} c\n", "  {{ 1 }}\n  {{ 2 }}\n",
    "\t{% set x = 1 %}\t\n{{ x }}", "a\n  {%+ if true %}b{% endif +%}\nc", "  {%- set x = 1 %}\n\n{{ x }}",
    "{% if true %}\n\n\na{% endif %}", "a\n{# c #}\n{# d #}\nb", "   {# c #}   {% if true %}   x   {% endif %}   \n",
    "{% if true -%}\n  a\n{%- endif %}\n\n  b", "{{ 1 -}}\n\n\n{%- if true %} x{% endif %}", "a{{ ' b ' -}} \n c",
    "{% generation %}x{{ 1 }}{% endgeneration %}y", "{{ {'a': 'b}}'}['a'] }}", "{{ '{{ }} {% %}' }}", "{ {x} } {%% {a: 1}",
    "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ tools is none }}|{{ documents is none }}",
    "{% if tools %}t{% elif messages %}m{% else %}e{% endif %}", "{% if not messages %}x{% else %}y{% endif %}",
    "{{ (messages | length - 1) * 2 }}{{ messages | length > 3 }}{{ -messages | length }}",
    "{{ 'a' ~ 'b' | upper }}{{ ('a' ~ 'b') | upper }}{{ -3 | string }}{{ 2 - -3 }}",
    "{{ 'x' * 0 if false else 'ok' }}", "{{ [] == [] }}{{ {'a': 1} == {'a': 1} }}{{ [1, [2]] == [1, [2]] }}{{ none == nothing }}",
    "{{ messages[0] == messages[0] }}{{ messages[0] != messages[1] }}{{ messages == messages[:] }}",
    "{{ raise_exception('no ' ~ 'way') }}", "{{ nothing.x }}", "{{ nothing + 'a' }}", "{{ 1 + 'a' }}", "{{ 'a' < 1 }}",
    "{{ [1][0][0] is defined }}", "{{ 1 // 0 }}", "{{ 'a'.split('') }}", "{% for x in 5 %}{% endfor %}", "{{ nothing() }}",
]
