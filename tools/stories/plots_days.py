"""Plots about days that go otherwise than planned. See plots.py."""

import words as W


def treasure(s):
    s.anyone(0.2)
    s.meet()
    if s.chance(0.5):
        s.sibling()
        s.v["w"], s.v["intro"] = s.v["b"], s.v["sib"]
    else:
        s.friend()
        s.v["w"], s.v["intro"] = s.v["f"], s.v["mf"]
    s.one_day()
    s.v["fspot"] = s.pick(["in an old book", "under the stairs", "in the attic", "in a bottle", "in an old box"])
    s.add("{oneday}, {he} found an old map {fspot}. It had a big red X on it.", "{oneday}, {h} and {intro} found a treasure map {fspot}.")
    s.v["l1"], s.v["l2"], s.v["l3"] = s.rng.sample(["the old bridge", "the tall tree", "the big rock", "the white gate", "the little stream", "the red barn", "the stone wall", "the dark cave"], 3)
    s.add('"Look, {w}! It is a treasure map!" said {h}.', '"Let us find the treasure!" said {h}. "Yes!" said {w}.')
    s.add("They followed the map. First they walked to {l1}. Then they went to {l2}.", "The map said to go past {l1} and then to {l2}.")
    if s.chance(0.5):
        s.add("At {l2}, there was a lot of mud. {w} slipped, but {h} [held {whim}|pulled {whim} out].".replace("{whim}", "{bhim}" if "b" in s.v else "{fhim}"))
    else:
        s.add('"I am tired," said {w}. "Just a little more," said {h}, and took {whis} hand.'.replace("{whis}", "{bhis}" if "b" in s.v else "{fhis}"))
    s.add("At last they came to {l3}. There was the X! They began to dig.", "The X was at {l3}. They dug and dug.")
    s.v["box"] = s.pick(["a small wooden box", "an old chest", "a rusty tin box", "a little blue box"])
    s.add("They found {box}.", "Bump! They hit {box}.")
    inside = s.pick(["coins", "toys", "letter", "shells"])
    if inside == "coins":
        s.add("It was full of chocolate coins! They shared them and ate them in the sun.")
    elif inside == "toys":
        s.add('Inside was a note. It said, "I hid my toys here when I was small. Have fun! Love, Grandpa." There were {n1} and {n2}.'.replace("{n1}", "a " + s.pick(["top", "whistle", "yo-yo"])).replace("{n2}", "two " + s.pick(["tin soldiers", "small cars", "marbles"])))
    elif inside == "letter":
        s.add('Inside was a letter. It said, "The best treasure is a good friend." {h} looked at {w} and smiled.')
    else:
        s.add("It was full of [shiny shells|pretty stones|old buttons in every color]. {h} and {w} shared them, one for you and one for me.")
    s.close("team", s.v["w"], 0.45)


def animal_rescue(s):
    s.kid() if s.chance(0.75) else s.beast(["bear", "rabbit", "fox", "deer", "dog", "goat", "monkey"])
    s.meet()
    s.one_day()
    s.place(W.LAND_PLACES)
    an, s.v["trouble"], s.v["fix"], s.v["free"] = s.pick([
        ("bird", "had a hurt wing and could not fly", "made a soft bed in a box and gave the bird water and seeds every day", "After a week, the bird could fly again"),
        ("turtle", "was on its back and could not get up", "gently turned the turtle over", "The turtle put its feet on the grass again"),
        ("rabbit", "was stuck under the fence", "dug a little hole under the fence", "The rabbit hopped free"),
        ("butterfly", "was caught in a spider web", "carefully pulled away the web", "The butterfly opened its wings"),
        ("hedgehog", "had fallen into a deep hole", "put a long branch into the hole", "The hedgehog climbed out"),
        ("fish", "was stuck in a tiny puddle", "carried the fish to the water in a bucket", "The fish swam in a circle"),
        ("squirrel", "had its tail stuck in the gate", "opened the gate very slowly", "The squirrel jumped free"),
        ("bee", "had fallen into the water and could not fly", "held out a leaf for the bee to climb on", "The bee dried its wings in the sun"),
        ("mouse", "was trapped in an empty jar", "tipped the jar on its side", "The mouse ran out of the jar"),
    ])
    s.v["an"], s.v["aadj"] = an, s.pick(["little", "small", "tiny"])
    s.add("{oneday}, {h} was {at} and saw a {aadj} {an}. It {trouble}.", "{oneday}, {h} found a {aadj} {an} {at}. The {an} {trouble}.")
    s.add('"[Oh no|Poor thing]," said {h}. "Do not be afraid, little {an}. I will help you."', "The {an} looked very scared. {h} spoke in a soft voice and came closer.")
    s.add("{h} {fix}.", "{He} thought for a moment. Then {he} {fix}.")
    s.add("{free}. It was so happy!", "{free}!")
    s.add("{h} waved and watched it go.", '"Goodbye, little {an}!" said {h}.', "The {an} looked back one time and was gone.")
    if s.chance(0.65):
        back = {"bird": "sang outside {his} window every morning", "turtle": "came to sit next to {him} in the sun", "rabbit": "left a small flower at {his} door", "butterfly": "sat on {his} nose and made {him} laugh",
                "hedgehog": "came to say hello with three little babies", "fish": "jumped out of the water to say hello", "squirrel": "left a pile of nuts at {his} door", "bee": "showed {him} a field full of flowers", "mouse": "brought {him} a shiny button"}[an]
        s.v["back"] = s.render(back)
        s.add("The next day, the {an} came back. It {back}." if an != "fish" else "The next day, {h} went back to the water. The fish {back}.", "A few days later, {h} saw the {an} again. It {back}.")
        s.add("{h} had made a new friend.", '"Thank you, {an}!" said {h}.', "Now {h} had a new friend.")
    s.close(s.pick(["help", "kind"]))


def race(s):
    s.beast(W.FAST_ANIMALS)
    s.friend()
    s.v["fkind"] = s.pick(W.SLOW_ANIMALS)
    s.meet(short=True)
    s.add("{He} was very fast. \"Nobody is as fast as I am!\" {he} said [every day|to everyone].", '{h} could run like the wind, and {he} [told everyone|liked to brag]. "I am the best!" {he} said.')
    s.one_day()
    s.v["goal"] = s.pick(["big rock", "old oak tree", "pond", "bridge", "top of the hill"])
    s.add('{oneday}, a {fkind} named {f} said, "Let us have a race to the {goal}."')
    s.add('{h} laughed. "You? You are so slow!" {he} said.', '"A race with you? That is funny," said {h}.')
    s.add("The race began. {h} ran very fast, and {f} walked slowly, step by step.", "One, two, three, go! {h} was soon far away. {f} went on, slow and steady.")
    br = s.pick(["nap", "stuck", "food"])
    if br == "stuck":
        s.v["stuck"] = s.pick(["fell into a hole", "got stuck in the mud", "got caught in a bush"])
        s.add("But {h} did not look where {he} ran, and {he} {stuck}. \"Help!\" {he} called.")
        s.add("Soon {f} came by. {fHe} could win the race now. But {f} stopped.", "{f} heard {him} and stopped.")
        s.add('"Hold on to me," said {f}, and pulled {h} out.', "{f} found a long stick and helped {h} out.")
        s.add("They walked to the {goal} together, side by side. Nobody lost and nobody won.", '"You are slow, but you are a true friend," said {h}. They crossed the line together.')
        s.close(s.pick(["proud", "help"]), s.v["f"], 0.8)
    else:
        if br == "nap":
            s.add('"I have a lot of time," {h} thought. {He} lay down under a tree and fell asleep.')
        else:
            s.v["food"] = s.pick(["berries", "apples", "sweet clover", "carrots"])
            s.add('Then {h} saw some {food}. "I have time to eat," {he} said. {He} ate and ate.')
        s.add("{f} did not stop. {fHe} went on, step by step, past {h}.", "Step by step, {f} walked past {him}.")
        s.add("When {h} looked up, {f} was already at the {goal}. {h} ran, but it was too late.", "At last {h} ran on, but {f} was at the {goal} first!")
        s.add('"You won," said {h}. "I should not have laughed at you."', 'All the animals cheered for {f}. {h} said, "I am sorry. You did well."')
        s.close("proud", s.v["f"], 0.8)


def tidy_room(s):
    s.kid()
    s.toy(W.SMALL_THINGS + ["teddy bear", "doll", "toy car"])
    s.meet()
    s.family(["mom", "dad", "grandma"])
    s.add("But {his} room was always a big mess. There were toys [on the floor|on the bed] and socks everywhere.", "{h} never wanted to clean {his} room. It was a big mess.")
    s.one_day()
    s.add('{oneday}, {g} said, "Please clean your room, {h}." "Later," said {h}.', '"Please tidy up," said {g}. "I do not want to," said {h}.')
    s.add("Then {h} wanted to play with {his} {adj} {toy}, but {he} could not find it.", "The next day, {h} needed {his} {adj} {toy}. It was not there.")
    s.add("{He} looked under the socks and behind the toys. No {toy}.", "{He} looked and looked, but there was too much stuff.")
    s.add('"{G}, I cannot find my {toy}!" {h} cried.', '"My {toy} is lost!" said {h}.')
    s.add('"Maybe you will find it when you clean," said {G}.', '{G} smiled. "A messy room likes to hide things," {Ghe} said.')
    s.add("So {h} began to clean. {He} put the books on the shelf, the toys in the box, and the socks in the basket.", "{h} picked up the socks, then the books, and then the blocks.")
    s.v["spot"] = s.pick(["under the last sock", "under the bed", "behind a pile of books", "at the bottom of the toy box"])
    s.add("And there, {spot}, was the {adj} {toy}!", "Then {he} saw something {adj} {spot}. It was the {toy}!")
    s.add("{h} looked around. The room was clean and pretty.", '"My room looks so nice!" said {h}.', "{G} came in and clapped. \"Well done, {h}!\" {Ghe} said.")
    s.close("tidy", None, 0.75)


def lost_in_place(s):
    s.kid() if s.chance(0.7) else s.beast(["bunny", "mouse", "bear", "fox", "duck", "kitten", "puppy", "lamb", "penguin", "deer", "chick"])
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.place(W.TOWN_PLACES if not s.animal else [p for p in W.OUTDOORS if p[0] in ("forest", "meadow", "hill", "woods")])
    s.one_day()
    s.add("{oneday}, {h} went {to} with {g}.", "{oneday}, {g} took {h} {to}.")
    s.add('"Stay close to me," said {G}.', '"Do not run away," {G} said. "Hold my hand."' if not s.animal else '"Do not run away," {G} said.')
    s.v["see"] = s.pick(["a funny clown", "a big red balloon", "a puppy", "a man with a drum", "a shiny fish"]) if not s.animal else s.pick(["a blue butterfly", "a shiny stone", "a funny frog", "a sweet berry bush", "a red leaf in the wind"])
    s.add("But {h} saw {see} and ran to look at it.", "Then {h} saw {see}. {He} followed it and did not look back.")
    s.add("When {he} turned around, {G} was gone. {h} was lost.", "After a while, {h} looked around. {He} could not see {G} anywhere.")
    s.add("{h} began to cry.", '"{G}! Where are you?" {he} called.', "{h} felt very small and very scared.")
    if s.chance(0.5) or s.animal:
        s.v["who"] = s.pick(["a kind woman", "a police officer", "a nice old man", "a guard"]) if not s.animal else s.pick(["a wise owl", "an old turtle", "a kind deer", "a friendly squirrel"])
        s.v["whos"] = "the " + s.v["who"].split(" ", 1)[1].replace("nice ", "").replace("kind ", "").replace("wise ", "").replace("friendly ", "")
        s.add('{who} saw {him}. "Are you lost, little one?" asked {whos}.', '{who} stopped. "Why are you crying?" asked {whos}. "I lost my {gword}," said {h}.')
        s.add('"Let us find {Ghim} together," said {whos}.', '"I will help you," said {whos}. "Come with me."')
        s.add("They walked and called, and soon they saw {G}.", "They went back the same way, step by step. There was {G}!")
        s.add("{h} said thank you to {whos}.", '"Thank you!" {h} said to {whos}.')
    else:
        s.add('Then {he} remembered what {G} had told {him}. "If you are lost, stay in one place."', '"If you are lost, stay and wait," {G} always said. {h} remembered this.')
        s.add("So {h} sat down on a bench and waited. {He} was brave.", "{h} stood next to the door and did not move.")
        s.add("Soon {G} came running. \"There you are!\" {Ghe} cried.")
    s.add("{G} hugged {h} for a long time.", '"I was so worried," said {G}, and held {h} tight.')
    s.add('"I will stay close to you now," said {h}.', "On the way home, {h} stayed very close to {G}.")
    s.close(s.pick(["listen", "careful"]), None, 0.6)


def birthday(s):
    s.anyone(0.35)
    s.meet()
    s.friend()
    s.family(["mom", "dad", "grandma"])
    s.add("Today was {h}'s birthday. {He} woke up very early and was so excited.", "One morning, {h} jumped out of bed. It was {his} birthday!")
    s.add('But {G} did not say "Happy birthday." {GHe} only said, "Good morning."', "But {g} was busy and did not say a word about it.")
    s.add('Then {h} saw {mf}. "Do you know what day it is?" asked {h}. "It is [Monday|Friday|Sunday]," said {f}, and ran away.', '{h} went to {mf}. "I cannot play today," said {f}. "I have things to do."')
    s.add('"Everyone forgot my birthday," {h} thought. A tear ran down {his} cheek.', "{h} walked home alone. {He} felt very sad.", '"Nobody remembers," {h} said to {self}.')
    s.add("When {he} came home, the house was dark and quiet. {h} opened the door.", "In the evening, {he} opened the door. It was very dark inside.")
    s.add('"Surprise!" everyone shouted.', 'Then the lights came on. "Surprise! Happy birthday, {h}!" they all cried.')
    s.v["cake"] = s.pick(["chocolate", "carrot", "strawberry", "honey", "banana"])
    s.add("There were balloons and a big {cake} cake. {f} and {G} were there too.", "{G} had a {cake} cake, and {f} had a [red|blue|yellow|green] box with a bow.")
    s.add('"We did not forget," said {f}. "It was a secret!"', '"We made it all for you," said {G}.')
    s.toy(["kite", "book", "ball", "drum", "puppet", "toy boat", "hat", "scarf"])
    s.maybe(0.6, "{f} gave {him} a {adj} {toy}. It was just what {he} wanted.")
    s.add("{h} laughed and hugged them all.", "{h} blew out the candles and made a wish.")
    s.close(None)


def make_gift(s):
    s.anyone(0.2)
    s.meet()
    s.family(["mom", "dad", "grandma", "grandpa"])
    s.add("Soon it was {G}'s birthday. {h} wanted to give {Ghim} something special.", "{h} loved {g} very much and wanted to give {Ghim} a gift.")
    s.add("But {he} had no money.", '"I have only one coin," said {h}. "I cannot buy anything."', "{He} went to the store, but everything cost too much.") if not s.animal else s.add("But {he} did not know what to give.")
    s.add("{h} sat down and thought. Then {he} had an idea. {He} could make a gift!", '"I know!" said {h}. "I will make something myself."')
    gift, s.v["stuff"], s.v["make"] = s.pick([
        ("card", "paper and crayons", "drew a big red heart on it"), ("necklace", "string and shells", "put the shells on the string, one by one"),
        ("picture", "paper and paint", "painted a house with a big sun"), ("crown", "flowers and leaves", "tied the flowers into a ring"),
        ("bird house", "wood and nails", "painted it blue"), ("bracelet", "ribbon and buttons", "sewed the buttons on the ribbon"),
        ("basket", "long green grass", "bent the grass over and under"), ("little boat", "wood and cloth", "put a tiny flag on it")])
    s.v["gift"] = gift
    s.add("{He} got {stuff} and went to work.", "{He} found {stuff} and sat down at the table.")
    s.add("{He} {make}. It took all day.", "Very carefully, {he} {make}.")
    s.add("The {gift} was not perfect, but {he} had made it with love.", "It was a little crooked, but it was pretty.", "At last, the {gift} was done.")
    if s.chance(0.35):
        s.add("Then the wind blew it off the table, and a part of it [broke|came off]. {h} did not give up. {He} fixed it.")
    s.add('{h} gave the {gift} to {G}. "I made this for you," {he} said.', '"Happy birthday, {G}!" said {h}, and held out the {gift}.')
    s.add('{G} had tears in {Ghis} eyes. "It is the best gift ever," {Ghe} said.', '"Did you make this {gift}?" asked {G}. "It is wonderful!"')
    s.close("give", s.pick([None, s.v["G"]]), 0.7)


def magic_wish(s):
    s.anyone(0.4)
    s.meet()
    s.one_day()
    s.place(W.LAND_PLACES)
    magic = s.pick(["fairy", "fish", "stone", "star", "lamp"])
    s.add({"fairy": "{oneday}, {h} found a tiny fairy {at}. Her wing was stuck in a [bush|web], and {h} helped her.",
           "fish": "{oneday}, {h} found a golden fish on the grass {at}. {He} put it back in the water.",
           "stone": "{oneday}, {h} found a shiny stone {at}. It was warm, and it began to [glow|shine].",
           "star": "One night, a little star fell from the sky {at}. {h} found it in the grass.",
           "lamp": "{oneday}, {h} found an old lamp {at}. {He} rubbed it, and it began to glow."}[magic])
    s.v["magic"] = magic
    s.add('"[I will give you|You may have] one wish," said the {magic}.', '"Thank you for finding me," said the {magic}. "You can make one wish."')
    s.v["w1"], s.v["w2"] = s.pick2(["a big castle", "a mountain of candy", "a golden crown", "a flying horse", "a room full of toys"])
    s.add("{h} thought about {w1}. {He} thought about {w2}.", '"Should I wish for {w1}?" {he} thought. "Or for {w2}?"')
    s.friend()
    need, s.v["wish"], s.v["result"] = s.pick([
        ("{mf} was sick", "I wish that {f} gets well", "{f} jumped out of bed and felt fine"),
        ("{mf} was very sad because {fhe} had lost {fhis} {p}", "I wish that {f} finds {fhis} {p} again", "the {p} ran right into {f}'s arms"),
        ("there was no rain and all the flowers were dry", "I wish for rain", "soft rain began to fall, and all the flowers opened"),
        ("{mf} was always alone and had no one to play with", "I wish that {f} has many friends", "all the others came to play with {f}"),
        ("it was winter and the birds had no food", "I wish for food for all the birds", "there were seeds everywhere, and the birds sang"),
    ])
    s.v["p"] = s.pick(["dog", "cat", "puppy", "kitten"])
    if s.animal:
        s.v["p"] = "baby brother"
        s.v["result"] = s.v["result"].replace("right into {f}'s arms", "right up to {f}")
    s.v["need"], s.v["wish"], s.v["result"] = s.render(need), s.render(s.v["wish"]), s.render(s.v["result"])
    s.add("But then {he} remembered something. {need}.".replace("{need}", s.v["need"][0].upper() + s.v["need"][1:]))
    s.add('"I know my wish," said {h}. "{wish}."', '{h} closed {his} eyes. "{wish}," {he} said.')
    s.add('"That is a kind wish," said the {magic}. There was a flash of light.', "The {magic} shone with a bright light.")
    s.v["Result"] = s.v["result"][0].upper() + s.v["result"][1:]
    s.add("{Result}!", "And then, {result}!")
    s.add("The {magic} was gone, but {h} was very happy.", "{h} did not need a castle. {He} was happy.")
    s.close("kind", None, 0.7)


def snow_day(s):
    s.anyone(0.25)
    s.meet()
    s.add("One morning, {h} looked out and saw that everything was white. It had snowed!", "One winter day, there was a lot of snow.")
    if s.chance(0.5):
        s.sibling()
        s.v["w"], s.v["intro"] = s.v["b"], s.v["sib"]
    else:
        s.friend()
        s.v["w"], s.v["intro"] = s.v["f"], s.v["mf"]
    s.add('"Let us make a snowman!" {h} said to {intro}.', "{He} ran outside with {intro} to make a snowman.")
    s.add("They rolled a big ball, a middle ball, and a small ball.", "They made a big round body and a round head.")
    s.v["miss"], s.v["sub"], s.v["from"] = s.pick([("nose", "carrot", "the kitchen"), ("hat", "old hat", "the closet"), ("hat", "bucket", "the shed"), ("arms", "two long sticks", "under the tree"),
                                                  ("nose", "red apple", "the basket"), ("eyes", "two black stones", "the road"), ("scarf", "long red scarf", "the closet")])
    plural = s.v["miss"] in ("arms", "eyes")
    s.v["it"] = "them" if plural else "it"
    s.v["a"] = "" if plural else "a "
    s.add('"{w}, look! He has no {miss}," said {h}.', '"Something is wrong," said {w}. "He has no {miss}."')
    s.add("They looked in the snow, but they found nothing.", '"What can we use?" asked {h}. They thought and thought.')
    s.add("Then {h} ran to {from} and came back with {a}{sub}.", '"I know!" said {w}, and got {a}{sub} from {from}.') if s.v["from"] not in ("under the tree",) else s.add('"I know!" said {w}. There were {sub} under the tree.')
    s.add("They put {it} on the snowman. Now he looked [perfect|very happy|so funny].", "It was just right. The snowman had a big smile.")
    if s.chance(0.5):
        s.add("A few days later, the sun came out, and the snowman got smaller and smaller. {h} was sad.")
        s.add('"Do not be sad," said {w}. "He will come back with the next snow."', '"Goodbye, snowman," said {h}. "See you next winter!"')
        s.close(None)
    else:
        s.v["nm"] = s.pick(["Mr. Snow", "Frosty Fred", "Mr. White", "Snowy Joe", "Big Bob"])
        s.add('"His name is {nm}," said {h}. They danced around him.', "They called him {nm} and sang him a song.")
        s.add("When they were cold, they went inside and drank hot [chocolate|milk|tea].")
        s.close("team", s.v["w"], 0.4)


def floating_away(s):
    s.anyone(0.25)
    s.toy(W.FLOATING_TOYS)
    s.owns()
    s.place(W.WATERS)
    s.one_day()
    s.add("{oneday}, {h} went {to} to play with the {toy}.", "{oneday}, {he} took the {toy} {to}.")
    s.add("The {toy} fell into the water and began to float away.", "{He} put it on the water, but the wind pushed it far away.")
    s.add('"Come back, {toy}!" {h} cried.', '"Oh no! My {toy}!" {h} cried. The water was too deep for {him}.')
    s.v["who"] = s.pick(["duck", "frog", "turtle", "swan", "beaver", "otter", "fish"])
    if s.v["who"] == s.v["kind"]:
        s.v["who"] = "swan"
    s.v["name"] = s.pick(["friendly", "kind", "green" if s.v["who"] in ("frog", "turtle") else "white" if s.v["who"] in ("swan", "duck") else "little", "big"])
    if s.chance(0.5):
        s.add("{h} ran along the water, but {he} could not reach it.", "{He} tried with a stick, but the {toy} was too far.")
    s.add('Then a {name} {who} [came up|swam by]. "What is wrong?" asked the {who}. "My {toy} is gone," said {h}.', 'A {name} {who} saw it all. "Wait here," said the {who}. "I am a good swimmer."')
    s.add("The {who} swam out and pushed the {toy} back to {h}.", "Splash! The {who} swam fast and brought the {toy} back.")
    s.add('"Thank you so much!" said {h}. "How can I thank you?"', "{h} was so happy to have the {adj} {toy} again.")
    s.add('"Will you play with me?" asked the {who}. "I am often alone here." "Yes!" said {h}.', '"I would like some bread," said the {who}. {h} gave the {who} all the bread {he} had.')
    s.add("After that, {h} came {to} every day to see the {who}.", "They played with the {toy} all day, and {h} held on to it very well.")
    s.close(s.pick(["help", "friend", "careful"]))


def scary_neighbor(s):
    s.anyone(0.4)
    s.meet()
    who = s.pick(["bear", "dog", "giant", "dragon", "wolf", "lion"]) if s.animal else s.pick(["dog", "giant", "dragon", "bear"])
    if who == s.v["kind"]:
        who = "giant"
    s.v["who"] = who
    s.v["live"] = s.pick(["in a dark cave", "on the top of the hill", "in an old house", "behind the forest"])
    s.add("Near {his} home, there was a [big|huge] {who} {live}. Everyone was afraid of it." if who != "giant" else "Near {his} home, there was a huge giant {live}. Everyone was afraid of him.")
    s.v["it"], s.v["its"], s.v["itm"] = ("he", "his", "him") if who == "giant" else ("it", "its", "it")
    s.add('"Do not go there," they said. "The {who} is mean!"', '"The {who} will eat you!" the others said.')
    s.one_day()
    s.add("{oneday}, {h} heard someone cry. It was the {who}!", "{oneday}, {h}'s ball rolled [far away|down the road], right to the feet of the {who}." if not s.animal else "{oneday}, {h} got lost and came right to the home of the {who}.")
    s.add("{h} wanted to run away, but {he} saw that the {who} was sad.", "{h} was very scared. But the {who} had tears in {its} eyes.")
    s.add('"Why are you sad?" {h} asked in a small voice.', '"Are you hurt?" asked {h}.')
    if s.chance(0.5):
        s.add('"Nobody wants to play with me," said the {who}. "They all run away because I am so big."', '"I am lonely," said the {who}. "I have no friends."')
        s.add('"I will be your friend," said {h}.', '"You can play with me," {h} said.')
        s.add("They played all day. The {who} [was very funny|gave {h} a ride|knew many games].")
    else:
        s.add('"I have a thorn in my foot," said the {who}. "It hurts so much."')
        s.add("{h} was afraid, but {he} pulled the thorn out with care.", '"Hold still," said {h}, and pulled it out, one, two, three!')
        s.add('"Thank you," said the {who}. "You are small, but you are brave."')
    s.add('{h} told everyone, "The {who} is not mean at all!"', "Soon all the others came to play with the {who} too.", "When the others saw this, they were not afraid anymore.")
    s.close(s.pick(["friend", "brave"]), None, 0.7)


def too_small(s):
    s.beast(W.SMALL_ANIMALS)
    s.friend()
    big = s.pick([k for k in W.BIG_ANIMALS if k != s.v["kind"]])
    s.v["fkind"] = big
    s.v["mf"] = s.render("{his} friend {f} the {fkind}")
    s.meet(short=True)
    s.add('{h} was very small. "I wish I were big like {f} the {fkind}," {he} said.', "{h} was the smallest of all the animals. {He} wanted to be big like {mf}.")
    s.add('"I am too small to do anything," {he} said.', "{He} could not reach the apples, and {he} could not see over the grass.", "The others said, \"You are too little to play with us.\"")
    s.one_day()
    s.v["thing"] = s.pick(["gold ring", "key", "shiny coin", "little bell", "ball"])
    s.v["hole"] = s.pick(["a small hole", "a crack in the rock", "a narrow pipe", "a hollow log", "a gap under the wall"])
    s.add("{oneday}, {f} dropped {fhis} {thing} into {hole}.", "{oneday}, {f} was very sad. {fHis} {thing} had rolled into {hole}.")
    s.add('"I cannot get it," said {f}. "I am too big."', "{f} tried to reach it, but {fhe} was much too big.")
    s.add("All the big animals tried, but nobody could get in.", "Others tried too, but they were all too big.") if s.chance(0.6) else None
    s.add('"I can do it!" said {h}. {He} [went|crawled] inside. It was dark, but {he} was brave.', '"Let me try," {h} said. {He} was so small that {he} could walk right in.')
    s.add("Soon {he} came out with the {thing}.", "{He} found the {thing} and pulled it out.")
    s.add('"You did it!" cried {f}. "I am so glad that you are small!"', '"Thank you, {h}!" said {f}. "You are a little hero."')
    s.add("All the animals cheered.", "{f} let {h} ride on {fhis} back all day.", "{h} stood very tall and proud.")
    s.close("self", None, 0.85)


def picnic(s):
    s.anyone(0.35)
    s.meet()
    s.friend()
    s.place(W.OUTDOORS)
    s.one_day()
    s.v["f1"], s.v["f2"] = s.pick2(W.PICNIC_FOOD)
    s.add("{oneday}, {h} and {mf} went {to} for a picnic.", "{oneday}, {h} asked {mf} to come {to} for a picnic.")
    s.add("They had a {f1} and a {f2} in a basket.", "{h} brought a {f1}, and {f} brought a {f2}.")
    s.v["thief"] = s.pick(["bird", "squirrel", "dog", "raccoon", "goat", "monkey", "crow"])
    if s.v["thief"] in (s.v["kind"], s.v["fkind"]):
        s.v["thief"] = "crow"
    s.add("They put a blanket on the grass and sat down.", "They found a nice place in the shade.")
    s.add("But then a [little|hungry|cheeky] {thief} came and took the {f1}!", "When they looked away, a [hungry|thin|little] {thief} took the {f1} and ran [away|to a tree]." if s.v["thief"] not in ("bird", "crow") else "When they looked away, a hungry {thief} took the {f1} and flew to a tree.")
    s.add('"Hey! That is our {f1}!" {h} shouted.', '"Stop!" cried {f}. "That is not yours!"')
    s.add("Then they saw that the {thief} had [three babies|two tiny babies]. They were all very hungry.", "The {thief} was so thin and hungry. {h} felt sorry for it.")
    s.add('"They need it more than we do," said {h}. {f} nodded.', '"Let it eat," said {f}. "We still have the {f2}."')
    s.add("{h} and {f} shared the {f2}. It tasted very good.", "They broke the {f2} into two parts, one for {h} and one for {f}.")
    s.maybe(0.6, "The {thief} came back and put a [red berry|pretty flower|shiny stone] on the blanket.", "When they went home, the {thief} followed them for a while.")
    s.close(s.pick(["share", "kind"]), s.v["f"])


def stage(s):
    s.anyone(0.35)
    s.meet()
    s.v["act"], s.v["did"] = s.pick([("sing a song", "sang"), ("dance", "danced"), ("play the drum", "played"), ("tell a story", "told the story"), ("play the flute", "played"), ("read a poem", "read the poem")])
    s.friend() if s.chance(0.5) else s.family(["mom", "dad", "grandma", "grandpa"])
    s.v["w"], s.v["intro"] = (s.v["f"], s.v["mf"]) if "f" in s.v else (s.v["G"], s.v["g"])
    s.v["where"] = s.pick(["at school", "in the town"]) if not s.animal else s.pick(["in the forest", "in the meadow"])
    s.add("Soon there was a big show {where}. {h} was going to {act}.", "{h} had to {act} in the big show {where}.")
    s.add("{He} practiced every day. But on the day of the show, {he} was very scared.", "When the day came, {h} looked at all the people. {His} legs shook." if not s.animal else "When the day came, {h} saw all the animals. {His} legs shook.")
    s.add('"I cannot do it," {h} whispered. "What if I make a mistake?"', '"They will laugh at me," said {h}.')
    s.add('"Just look at me," said {intro}. "I will sit in the first row."', '"Take a deep breath," said {intro}. "I know that you can do it."', '"Everyone makes mistakes," said {intro}. "Just have fun."')
    s.add("{h} walked out. It was very quiet. {He} looked for {w} and saw {w} smile.", "{h} took a deep breath and walked out. {w} waved at {him}.")
    if s.chance(0.4):
        s.add("At first {he} forgot how to start. But {w} nodded, and then {he} remembered.")
    s.add("Then {he} began. {He} {did}, and {he} forgot to be afraid.", "{h} {did} better than ever.")
    s.add("At the end, everyone clapped and cheered.", 'When {he} was done, everyone shouted, "Bravo!"')
    s.add('"I did it!" {h} said to {w}.', "{w} gave {him} a [big hug|flower|kiss on the cheek].")
    s.close("brave", None, 0.75)
